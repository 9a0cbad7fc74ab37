import jakarta.xml.ws.Holder;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Vector;
import javax.xml.namespace.QName;
import org.apache.axis.AxisFault;
import org.apache.axis.client.Call;
import org.apache.axis.message.SOAPBodyElement;
import org.apache.axis.types.UnsignedInt;
import org.apache.axis.types.UnsignedLong;
import org.apache.cxf.Bus;
import org.apache.cxf.BusFactory;
import org.apache.cxf.binding.soap.SoapFault;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.jaxws.endpoint.dynamic.JaxWsDynamicClientFactory;
import org.w3c.dom.Element;

/** Calls the services of hhfr serve, each by its own description, with CXF and Axis 1.4. */
class Services {
    static final String CONTEXT = "http://docs.oasis-open.org/ws-caf/2005/10/wsctx";

    /** What is said of a call of a service in a version of SOAP. */
    static String said(String service, String version, Object said) {
        return service + " " + version + ": " + said + "\n";
    }

    static Object get(Object of, String property) throws Exception {
        for (String prefix : List.of("get", "is")) {
            for (var m : of.getClass().getMethods()) {
                if (m.getName().equalsIgnoreCase(prefix + property)) {
                    return m.invoke(of);
                }
            }
        }
        throw new NoSuchMethodException(property + " of " + of.getClass());
    }

    static void set(Object of, String property, Object value) throws Exception {
        for (var m : of.getClass().getMethods()) {
            if (m.getName().equalsIgnoreCase("set" + property)) {
                m.invoke(of, value);
            }
        }
    }

    /** An object of a class that CXF made. */
    static Object made(String type) throws Exception {
        return Thread.currentThread().getContextClassLoader().loadClass(type).getConstructor().newInstance();
    }

    /** Calls each service by its own description, of which CXF makes classes and compiles them. */
    static String cxf(String base) throws Exception {
        Bus bus = BusFactory.newInstance().createBus();
        ClassLoader own = Thread.currentThread().getContextClassLoader();
        StringBuilder all = new StringBuilder();
        for (String version : List.of("1.1", "1.2")) {
            for (String name : List.of("concat", "sum", "records", "geoip", "blob", "ticker", "ledger", "context")) {
                Thread.currentThread().setContextClassLoader(own); // a client makes it that of its classes
                try (Client c = JaxWsDynamicClientFactory.newInstance(bus).createClient(base + "/" + name + "?wsdl", service(name),
                        port(name, version))) {
                    // Faults of the sender come with it in SOAP 1.2; left alone, CXF takes 400 for no SOAP.
                    c.getRequestContext().put("org.apache.cxf.transport.process_fault_on_http_400", true);
                    all.append(call(c, name, version));
                }
            }
        }
        Thread.currentThread().setContextClassLoader(own);
        bus.shutdown(true);
        return all.toString();
    }

    static QName service(String name) {
        return name.equals("context") ? new QName(CONTEXT, "ContextService") : new QName(Stacks.NS, name);
    }

    static QName port(String name, String version) {
        String soap = "Soap" + version.replace(".", "");
        return name.equals("context") ? new QName(CONTEXT, soap) : new QName(Stacks.NS, name + soap);
    }

    static String call(Client c, String name, String version) throws Exception {
        switch (name) {
            case "concat":
                return said(name, version, c.invoke(name, List.of("thin ", " links", "\u00e9<&>"))[0]);
            case "sum":
                return said(name, version, c.invoke(name, List.of(1.5f, -0.25f))[0]);
            case "records":
                List<Object> rows = new ArrayList<>();
                for (Object[] row : new Object[][] {{"<one>", -1, true}, {"zwei \u00e9", 2147483647, false}}) {
                    Object r = made("hhfr.peer._1.Record");
                    set(r, "text", row[0]);
                    set(r, "number", row[1]);
                    set(r, "flag", row[2]);
                    rows.add(r);
                }
                List<String> got = new ArrayList<>();
                for (Object r : (List<?>) c.invoke(name, rows)[0]) {
                    got.add(get(r, "text") + " " + get(r, "number") + " " + get(r, "flag"));
                }
                return said(name, version, String.join(", ", got));
            case "geoip":
                String inside = said(name, version, c.invoke(name, "129.125.102.100")[0]);
                try {
                    return inside + said("refused", version, c.invoke(name, "nowhere")[0]);
                } catch (SoapFault e) {
                    return inside + said("refused", version, e.getReason());
                }
            case "blob":
                return said(name, version, Base64.getEncoder().encodeToString((byte[]) c.invoke(name, 30L, BigInteger.valueOf(7))[0]));
            case "ticker":
                Object number = c.invoke(name, new Holder<>())[0]; // of the two results the second goes to the holder
                return said(name, version, ((BigInteger) number).signum() > 0 ? "ticks" : "no tick");
            case "ledger":
                Object[] page = c.invoke("read", c.invoke("add", "a-1", -5L)[0], 1);
                Object entry = ((List<?>) page[2]).get(0);
                return said(name, version, get(entry, "id") + " " + get(entry, "amount"));
            default:
                Object begun = c.invoke("begin", "urn:example:type", null, BigDecimal.valueOf(60), null)[0];
                Object getStatus = made("org.oasis_open.docs.ws_caf._2005._10.wsctx.GetStatus");
                set(getStatus, "contextIdentifier", get(begun, "contextIdentifier"));
                return said(name, version, c.invoke("getStatus", getStatus)[0]);
        }
    }

    /**
     * Calls each service by its own description. Axis has SOAP 1.1 only, and no classes for types
     * of a schema: what has such a type goes and comes as an element.
     */
    static String axis(String base) throws Exception {
        StringBuilder all = new StringBuilder();
        all.append(said("concat", "1.1", described(base, "concat", "concat")
            .invoke(new Object[] {new String[] {"thin ", " links", "\u00e9<&>"}})));
        all.append(said("sum", "1.1", described(base, "sum", "sum").invoke(new Object[] {new float[] {1.5f, -0.25f}})));
        List<String> got = new ArrayList<>();
        for (Stacks.Record r : Stacks.records(asElement(base, "records", "records", "<records xmlns='" + Stacks.NS + "'><record><text>&lt;one></text>"
                + "<number>-1</number><flag>true</flag></record><record><text>zwei \u00e9</text><number>2147483647</number>"
                + "<flag>false</flag></record></records>"))) {
            got.add(r.text + " " + r.number + " " + r.flag);
        }
        all.append(said("records", "1.1", String.join(", ", got)));
        all.append(said("geoip", "1.1", described(base, "geoip", "geoip").invoke(new Object[] {"129.125.102.100"})));
        try {
            all.append(said("refused", "1.1", described(base, "geoip", "geoip").invoke(new Object[] {"nowhere"})));
        } catch (AxisFault e) {
            all.append(said("refused", "1.1", e.getFaultString()));
        }
        all.append(said("blob", "1.1", Base64.getEncoder().encodeToString((byte[]) described(base, "blob", "blob")
            .invoke(new Object[] {new UnsignedInt(30), new UnsignedLong(7)}))));
        Call ticker = described(base, "ticker", "ticker");
        ticker.invoke(new Object[0]);
        Number tick = (Number) ticker.getOutputParams().get(new QName(Stacks.NS, "number"));
        all.append(said("ticker", "1.1", tick.longValue() > 0 ? "ticks" : "no tick"));
        Call add = described(base, "ledger", "add");
        add.invoke(new Object[] {"a-1", -5L});
        Element page = asElement(base, "ledger", "read", "<read xmlns='" + Stacks.NS + "'><from>"
            + add.getOutputParams().get(new QName(Stacks.NS, "count")) + "</from><most>1</most></read>");
        all.append(said("ledger", "1.1", Stacks.value(page, "id") + " " + Stacks.value(page, "amount")));
        Element begun = asElement(base, "context", "begin", "<begin xmlns='" + CONTEXT + "'><type>urn:example:type</type>"
            + "<timeout>60</timeout></begin>");
        String id = begun.getElementsByTagNameNS(CONTEXT, "context-identifier").item(0).getTextContent();
        Element status = asElement(base, "context", "getStatus", "<getStatus xmlns='" + CONTEXT + "'><context-identifier>" + id
            + "</context-identifier></getStatus>");
        return all.append(said("context", "1.1", status.getTextContent())).toString();
    }

    static Call described(String base, String name, String operation) throws Exception {
        QName service = service(name);
        return (Call) new org.apache.axis.client.Service(new java.net.URL(base + "/" + name + "?wsdl"), service)
            .createCall(port(name, "1.1"), new QName(service.getNamespaceURI(), operation));
    }

    static Element asElement(String base, String name, String operation, String xml) throws Exception {
        Call from = described(base, name, operation), c = (Call) new org.apache.axis.client.Service().createCall();
        c.setTargetEndpointAddress(from.getTargetEndpointAddress());
        c.setUseSOAPAction(true);
        c.setSOAPActionURI(from.getSOAPActionURI());
        return ((SOAPBodyElement) ((Vector<?>) c.invoke(new Object[] {Stacks.element(xml)})).get(0)).getAsDOM();
    }
}

import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.Dispatch;
import jakarta.xml.ws.Provider;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.ServiceMode;
import jakarta.xml.ws.WebServiceProvider;
import jakarta.xml.ws.soap.SOAPBinding;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.namespace.QName;
import javax.xml.transform.Source;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMResult;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.cxf.Bus;
import org.apache.cxf.BusFactory;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.jaxws.DispatchImpl;
import org.apache.cxf.jaxws.EndpointImpl;
import org.apache.cxf.transport.http.HTTPConduit;
import org.apache.cxf.ws.addressing.WSAddressingFeature;
import org.apache.cxf.ws.rm.feature.RMFeature;
import org.apache.cxf.ws.rm.manager.DeliveryAssuranceType;
import org.apache.cxf.ws.rm.manager.RM10AddressingNamespaceType;
import org.apache.cxf.ws.rmp.v200502.RMAssertion;

/** Sends entries to a ledger, or is one, with Apache CXF and its WS-ReliableMessaging. */
public class Reliable {
    private static final String NAMESPACE = "urn:hhfr:peer:1";

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "client" -> {
                for (int i = 2; i < args.length; i += 3) {
                    client(Integer.parseInt(args[1]), args[i], args[i + 1], args[i + 2], null);
                }
                System.exit(0);
            }
            case "decoupled" -> {
                int failed = 0;
                try {
                    for (int i = 3; i < args.length; i += 3) {
                        String replies = "http://127.0.0.1:" + args[2] + "/replies" + i;
                        client(Integer.parseInt(args[1]), args[i], args[i + 1], args[i + 2], replies);
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                    failed = 1; // the endpoint for replies would keep the program alive
                }
                System.exit(failed);
            }
            case "server" -> server(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** The feature, with messages sent again after a second. */
    private static RMFeature reliable(String version, String addressing) {
        RMFeature f = new RMFeature();
        RMAssertion assertion = new RMAssertion();
        RMAssertion.BaseRetransmissionInterval interval = new RMAssertion.BaseRetransmissionInterval();
        interval.setMilliseconds(1000L);
        assertion.setBaseRetransmissionInterval(interval);
        RMAssertion.AcknowledgementInterval ack = new RMAssertion.AcknowledgementInterval();
        ack.setMilliseconds(0L);
        assertion.setAcknowledgementInterval(ack);
        f.setRMAssertion(assertion);
        f.setRMNamespace(version.equals("1.0")
            ? "http://schemas.xmlsoap.org/ws/2005/02/rm" : "http://docs.oasis-open.org/ws-rx/wsrm/200702");
        if (version.equals("1.0") && addressing.equals("2005/08")) {
            RM10AddressingNamespaceType space = new RM10AddressingNamespaceType();
            space.setUri("http://www.w3.org/2005/08/addressing");
            f.setRM10AddressingNamespace(space);
        }
        DeliveryAssuranceType assurance = new DeliveryAssuranceType();
        assurance.setExactlyOnce(new DeliveryAssuranceType.ExactlyOnce());
        assurance.setInOrder(new DeliveryAssuranceType.InOrder());
        f.setDeliveryAssurance(assurance);
        return f;
    }

    /** Sends entries in one sequence, with a manager of its own; replies come to an address, if there is one. */
    private static void client(int count, String url, String version, String addressing, String replies)
        throws Exception {
        Bus bus = BusFactory.newInstance().createBus();
        BusFactory.setThreadDefaultBus(bus);
        QName port = new QName(NAMESPACE, "ledgerPort");
        Service service = Service.create(new QName(NAMESPACE, "ledger"));
        service.addPort(port, SOAPBinding.SOAP11HTTP_BINDING, url);
        // A DOM is read before the thread that took a decoupled reply goes on and closes its stream.
        Dispatch<DOMSource> dispatch = service.createDispatch(port, DOMSource.class, Service.Mode.PAYLOAD);
        dispatch.getRequestContext().put(BindingProvider.SOAPACTION_USE_PROPERTY, true);
        dispatch.getRequestContext().put(BindingProvider.SOAPACTION_URI_PROPERTY, "urn:hhfr:peer:1/add");
        Client client = ((DispatchImpl<DOMSource>) dispatch).getClient();
        new WSAddressingFeature().initialize(client, bus);
        reliable(version, addressing).initialize(client, bus);
        ((HTTPConduit) client.getConduit()).getClient().setReceiveTimeout(60000);
        if (replies != null) {
            ((HTTPConduit) client.getConduit()).getClient().setDecoupledEndpoint(replies);
        }
        for (int i = 0; i < count; i++) {
            DOMSource request = document("<add xmlns=\"" + NAMESPACE + "\"><id>e" + i + "</id><amount>" + i
                + "</amount></add>");
            // invoke now and then returns before a decoupled reply came, with nothing
            Source reply = replies == null ? dispatch.invoke(request) : dispatch.invokeAsync(request).get(30, TimeUnit.SECONDS);
            System.out.println(version + " " + addressing + " " + i + " " + value(text(reply), "count"));
        }
        client.destroy();
        bus.shutdown(true);
    }

    /** Is a ledger, which answers all versions. */
    private static void server(String port) throws Exception {
        EndpointImpl endpoint = new EndpointImpl(BusFactory.getDefaultBus(), new Ledger());
        endpoint.setFeatures(List.of(new WSAddressingFeature(), reliable("1.0", "2004/08")));
        endpoint.publish("http://127.0.0.1:" + port + "/ledger");
        System.out.println("ready");
        System.in.read();
        System.exit(0);
    }

    /** A ledger that prints what it gets. */
    @WebServiceProvider(serviceName = "ledger", portName = "ledgerPort", targetNamespace = NAMESPACE)
    @ServiceMode(Service.Mode.PAYLOAD)
    public static class Ledger implements Provider<Source> {
        private int count;

        @Override
        public synchronized Source invoke(Source request) {
            String id = value(text(request), "id");
            count++;
            System.out.println("entry " + id);
            return source("<addResponse xmlns=\"" + NAMESPACE + "\"><count>" + count + "</count></addResponse>");
        }
    }

    private static Source source(String xml) {
        return new StreamSource(new StringReader(xml));
    }

    private static DOMSource document(String xml) throws Exception {
        DOMResult document = new DOMResult();
        TransformerFactory.newInstance().newTransformer().transform(source(xml), document);
        return new DOMSource(document.getNode());
    }

    private static String text(Source s) {
        try {
            StringWriter w = new StringWriter();
            TransformerFactory.newInstance().newTransformer().transform(s, new StreamResult(w));
            return w.toString();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String value(String xml, String name) {
        Matcher m = Pattern.compile("<" + name + "[^>]*>([^<]*)<").matcher(xml);
        return m.find() ? m.group(1) : "none in " + xml;
    }
}

import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.Dispatch;
import jakarta.xml.ws.Provider;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.ServiceMode;
import jakarta.xml.ws.WebServiceException;
import jakarta.xml.ws.WebServiceProvider;
import jakarta.xml.ws.soap.SOAPBinding;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
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
import org.apache.cxf.message.Message;
import org.apache.cxf.phase.AbstractPhaseInterceptor;
import org.apache.cxf.phase.Phase;
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
            case "client" -> clients(args);
            case "server" -> server(args);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** The feature, with messages sent again after so many milliseconds. */
    private static RMFeature reliable(String version, String addressing, long resend) {
        RMFeature f = new RMFeature();
        RMAssertion assertion = new RMAssertion();
        RMAssertion.BaseRetransmissionInterval interval = new RMAssertion.BaseRetransmissionInterval();
        interval.setMilliseconds(resend);
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

    /**
     * Runs clients at the same time: after how many entries each sends and after how many
     * milliseconds again, URL, versions of reliable messaging and addressing, and where replies
     * come, of each.
     */
    private static void clients(String[] args) throws Exception {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int i = 3; i < args.length; i += 4) {
            int at = i;
            all.add(CompletableFuture.runAsync(() -> {
                try {
                    client(Integer.parseInt(args[1]), Long.parseLong(args[2]), args[at], args[at + 1], args[at + 2],
                        args[at + 3]);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            }, task -> new Thread(task).start()));
        }
        int failed = 0;
        for (CompletableFuture<Void> one : all) {
            try {
                one.get();
            } catch (ExecutionException e) {
                e.printStackTrace();
                failed = 1;
            }
        }
        System.exit(failed); // the endpoints for replies would keep the program alive
    }

    /** Takes the replies. */
    private static class Replies extends AbstractPhaseInterceptor<Message> {
        private final BlockingQueue<String> came = new LinkedBlockingQueue<>();

        Replies() {
            super(Phase.PRE_INVOKE);
        }

        @Override
        public void handleMessage(Message m) {
            List<?> list = m.getContent(List.class);
            if (list != null && !list.isEmpty() && list.get(0) instanceof Source s) {
                came.add(value(text(s), "count"));
            }
        }
    }

    /** Sends entries in one sequence, with a manager of its own; replies come to an address, or "anonymous". */
    private static void client(int count, long resend, String url, String version, String addressing, String place)
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
        reliable(version, addressing, resend).initialize(client, bus);
        Replies replies = new Replies();
        client.getInInterceptors().add(replies);
        ((HTTPConduit) client.getConduit()).getClient().setReceiveTimeout(60000);
        String way = "anonymous";
        if (!place.equals(way)) {
            way = "decoupled";
            ((HTTPConduit) client.getConduit()).getClient().setDecoupledEndpoint(place);
        }
        String name = way + "-" + version + "-" + addressing + "-";
        for (int i = 0; i < count; i++) {
            DOMSource request = document("<add xmlns=\"" + NAMESPACE + "\"><id>" + name + i + "</id><amount>" + i
                + "</amount></add>");
            // A 202 that is looked at after the decoupled reply takes its place (HTTPConduit.handleResponseInternal),
            // and invoke returns without one. Not invokeAsync: of a request that is lost it never calls back, as
            // RetransmissionInterceptor takes the exception that ClientOutFaultObserver then hands on; of one that is
            // lost when it is sent again it reports the loss, as if nothing more were done.
            WebServiceException failure = null;
            try {
                dispatch.invoke(request);
            } catch (WebServiceException e) {
                failure = e;
            }
            String reply = replies.came.poll(2, TimeUnit.MINUTES);
            if (reply == null) {
                throw new IllegalStateException("no reply to " + name + i, failure);
            }
            System.out.println("reply " + name + i + " " + reply);
        }
        try { // what ends a sequence is sent once (Proxy.lastMessage), and its answer waited for for a minute
            CompletableFuture.runAsync(client::destroy).get(5, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            System.err.println("the end of the sequence was lost");
        }
    }

    /**
     * Is ledgers at paths, which answer all versions. Each has a manager of its own.
     */
    private static void server(String[] args) throws Exception {
        for (int i = 2; i < args.length; i++) {
            Bus bus = BusFactory.newInstance().createBus();
            BusFactory.setThreadDefaultBus(bus);
            EndpointImpl endpoint = new EndpointImpl(bus, new Ledger());
            endpoint.setFeatures(List.of(new WSAddressingFeature(), reliable("1.0", "2004/08", 200)));
            endpoint.publish("http://127.0.0.1:" + args[1] + args[i]);
        }
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

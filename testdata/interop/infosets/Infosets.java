import jakarta.jws.Oneway;
import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import jakarta.jws.soap.SOAPBinding;
import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.WebServiceException;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cxf.feature.FastInfosetFeature;
import org.apache.cxf.interceptor.Fault;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.message.Message;
import org.apache.cxf.phase.AbstractPhaseInterceptor;
import org.apache.cxf.phase.Phase;

/** CXF with its feature of Fast Infoset: a client of hhfr serve, and a server for hhfr. */
public class Infosets {
    static final String NS = "urn:hhfr:peer:1";
    static final String[][] BINDINGS = {{"11", "http://schemas.xmlsoap.org/wsdl/soap/http"},
        {"12", "http://www.w3.org/2003/05/soap/bindings/HTTP/"}};

    /** The sum service of hhfr serve, and what it has not. */
    @WebService(targetNamespace = NS, name = "sumPortType")
    public interface Port {
        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        float sum(@WebParam(name = "item", targetNamespace = NS) List<Float> item);

        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        boolean geoip(@WebParam(name = "address", targetNamespace = NS) String address);

        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        String text(@WebParam(name = "value", targetNamespace = NS) String value);

        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        int notified();

        @WebMethod
        @Oneway
        void notice(@WebParam(name = "value", targetNamespace = NS) String value);

        @WebMethod
        @SOAPBinding(parameterStyle = SOAPBinding.ParameterStyle.BARE)
        void nothing();
    }

    @WebService(targetNamespace = NS, serviceName = "sum", endpointInterface = "Infosets$Port")
    public static class Service implements Port {
        final AtomicInteger notices = new AtomicInteger();

        public float sum(List<Float> item) {
            float sum = 0;
            for (float v : item == null ? List.<Float>of() : item) {
                sum += v;
            }
            return sum;
        }

        public boolean geoip(String address) {
            throw new IllegalArgumentException("no address: " + address);
        }

        public String text(String value) {
            return value;
        }

        public int notified() {
            return notices.get();
        }

        public void notice(String value) {
            notices.incrementAndGet();
        }

        public void nothing() {}
    }

    /** serve none|negotiated|forced|only, call negotiated|forced BASE MOCK */
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "serve" -> serve(args[1]);
            case "call" -> call(args[1].equals("forced"), args[2], args[3]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    static FastInfosetFeature feature(boolean force) {
        FastInfosetFeature f = new FastInfosetFeature();
        f.setForce(force);
        return f;
    }

    /** Refuses all that is XML. */
    static class Only extends AbstractPhaseInterceptor<Message> {
        Only() {
            super(Phase.RECEIVE);
        }

        public void handleMessage(Message m) {
            String type = (String) m.get(Message.CONTENT_TYPE);
            if ("POST".equals(m.get(Message.HTTP_REQUEST_METHOD)) && (type == null || !type.contains("fastinfoset"))) {
                Fault f = new Fault(new IllegalArgumentException("Fast Infoset only, not " + type));
                f.setStatusCode(415);
                throw f;
            }
        }
    }

    static void serve(String mode) throws Exception {
        int port;
        try (ServerSocket s = new ServerSocket(0)) {
            port = s.getLocalPort();
        }
        for (String[] binding : BINDINGS) {
            JaxWsServerFactoryBean server = new JaxWsServerFactoryBean();
            server.setServiceClass(Service.class);
            server.setServiceBean(new Service());
            server.setBindingId(binding[1]);
            server.setAddress("http://127.0.0.1:" + port + "/soap" + binding[0]);
            if (!mode.equals("none")) {
                server.getFeatures().add(feature(mode.equals("forced")));
            }
            if (mode.equals("only")) {
                server.getInInterceptors().add(new Only());
            }
            server.create();
        }
        System.out.println(port);
        while (System.in.read() >= 0) {}
    }

    static Port port(String address, String binding, boolean force) {
        JaxWsProxyFactoryBean client = new JaxWsProxyFactoryBean();
        client.setServiceClass(Port.class);
        client.setAddress(address);
        client.setBindingId(binding);
        client.getFeatures().add(feature(force));
        Port p = (Port) client.create();
        ((BindingProvider) p).getRequestContext().put("org.apache.cxf.transport.process_fault_on_http_400", true);
        return p;
    }

    static void call(boolean force, String base, String mock) {
        for (String[] binding : BINDINGS) {
            String said = "SOAP 1." + binding[0].charAt(1) + ":";
            Port sum = port(base + "/sum", binding[1], force), geoip = port(base + "/geoip", binding[1], force);
            said += " " + sum.sum(Arrays.asList(1.5f, 2f)) + " " + sum.sum(List.of()) + " " + sum.sum(Arrays.asList(-0.25f));
            said += " " + geoip.geoip("129.125.102.100");
            try {
                said += " " + geoip.geoip("nowhere");
            } catch (WebServiceException e) {
                said += " refused: " + e.getCause().getMessage();
            }
            Port other = port(mock + "/soap" + binding[0], binding[1], force);
            other.nothing();
            other.notice("one");
            other.nothing();
            System.out.println(said + ", nothing, a notice");
        }
    }
}

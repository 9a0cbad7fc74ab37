import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import java.io.File;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.transport.jms.ConnectionFactoryFeature;
import org.apache.qpid.jms.JmsConnectionFactory;

/** SOAP over JMS: a broker, a CXF client and a CXF server at it. Servers print a line, and end with their input. */
public class Jms {
    static final String NS = "urn:hhfr:peer:1";
    static final String TRANSPORT = "http://www.w3.org/2010/soapjms/";

    @WebService(targetNamespace = NS, name = "sumPortType")
    public interface Port {
        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        float sum(@WebParam(name = "item", targetNamespace = NS) List<Float> item);
    }

    @WebService(targetNamespace = NS, serviceName = "sum", endpointInterface = "Jms$Port")
    public static class Service implements Port {
        public float sum(List<Float> item) {
            if (item == null || item.isEmpty()) {
                throw new IllegalArgumentException("nothing to add");
            }
            float sum = 0;
            for (float v : item) {
                sum += v;
            }
            return sum;
        }
    }

    /** broker FOLDER [PORT], serve PORT ADDRESS, call PORT ADDRESS CALLS THREADS */
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "broker" -> broker(new File(args[1]), args.length > 2 ? Integer.parseInt(args[2]) : free());
            case "serve" -> serve(args[1], args[2]);
            case "call" -> call(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    static int free() throws Exception {
        try (ServerSocket s = new ServerSocket(0)) {
            return s.getLocalPort();
        }
    }

    static void broker(File folder, int port) throws Exception {
        Configuration c = new ConfigurationImpl();
        c.setSecurityEnabled(false).setJournalType(JournalType.NIO);
        c.setJournalDirectory(folder + "/journal").setBindingsDirectory(folder + "/bindings");
        c.setLargeMessagesDirectory(folder + "/large").setPagingDirectory(folder + "/paging");
        c.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP");
        SimpleString dead = SimpleString.of("dead");
        AddressSettings all = new AddressSettings().setDeadLetterAddress(dead).setExpiryAddress(SimpleString.of("expired"));
        all.setAutoDeleteQueues(false).setAutoDeleteAddresses(false);
        c.addAddressSetting("#", all.setAutoCreateQueues(true).setAutoCreateAddresses(true));
        EmbeddedActiveMQ server = new EmbeddedActiveMQ();
        server.setConfiguration(c);
        server.start();
        System.out.println(port);
        while (System.in.read() >= 0) {}
        server.stop();
    }

    static ConnectionFactoryFeature at(String port) {
        return new ConnectionFactoryFeature(new JmsConnectionFactory("amqp://127.0.0.1:" + port));
    }

    static void serve(String port, String address) throws Exception {
        JaxWsServerFactoryBean server = new JaxWsServerFactoryBean();
        server.setServiceClass(Service.class);
        server.setServiceBean(new Service());
        server.setTransportId(TRANSPORT);
        server.setAddress(address);
        server.getFeatures().add(at(port));
        server.create();
        System.out.println(address);
        while (System.in.read() >= 0) {}
    }

    static void call(String port, String address, int calls, int threads) throws Exception {
        JaxWsProxyFactoryBean client = new JaxWsProxyFactoryBean();
        client.setServiceClass(Port.class);
        client.setTransportId(TRANSPORT);
        client.setAddress(address);
        client.getFeatures().add(at(port));
        Port proxy = (Port) client.create();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Float>> got = IntStream.range(0, calls)
            .mapToObj(i -> pool.submit(() -> proxy.sum(Arrays.asList((float) i, 0.5f)))).collect(Collectors.toList());
        for (int i = 0; i < calls; i++) {
            if (got.get(i).get() != i + 0.5f) {
                throw new AssertionError(i + " and 0.5 are not " + got.get(i).get());
            }
        }
        System.out.println(calls + " right answers");
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.xml.namespace.QName;
import org.apache.axiom.om.OMAbstractFactory;
import org.apache.axiom.om.OMElement;
import org.apache.axiom.om.OMFactory;
import org.apache.axiom.om.OMNamespace;
import org.apache.axiom.soap.SOAPEnvelope;
import org.apache.axis2.AxisFault;
import org.apache.axis2.addressing.EndpointReference;
import org.apache.axis2.client.Options;
import org.apache.axis2.client.ServiceClient;
import org.apache.axis2.context.ConfigurationContext;
import org.apache.axis2.context.ConfigurationContextFactory;
import org.apache.axis2.context.MessageContext;
import org.apache.axis2.description.AxisOperation;
import org.apache.axis2.description.AxisService;
import org.apache.axis2.description.InOutAxisOperation;
import org.apache.axis2.receivers.AbstractInOutMessageReceiver;
import org.apache.axis2.transport.http.SimpleHTTPServer;
import org.apache.sandesha2.Sandesha2Constants;
import org.apache.sandesha2.client.SandeshaClientConstants;

/**
 * A ledger and clients of ledgers with Axis2 and its WS-ReliableMessaging, Sandesha2:
 * Sandesha REPOSITORY PORT. The ledger is at /axis2/services/ledger. Prints "ready", then each
 * entry that it gets. A line of its input is how many entries clients send, and for each a URL, a
 * version and a name; it prints each reply, and "done" after the last one.
 */
public class Sandesha {
    private static final String NAMESPACE = "urn:hhfr:peer:1";
    private static final String ADD = NAMESPACE + "/add";
    private static final OMFactory OM = OMAbstractFactory.getOMFactory();

    public static void main(String[] args) throws Exception {
        ConfigurationContext server = ConfigurationContextFactory.createConfigurationContextFromFileSystem(args[0]);
        AxisService service = new AxisService("ledger");
        AxisOperation add = new InOutAxisOperation(new QName(NAMESPACE, "add"));
        add.setMessageReceiver(new Ledger());
        service.addOperation(add);
        service.mapActionToOperation(ADD, add);
        server.getAxisConfiguration().addService(service);
        for (String module : List.of("addressing", "sandesha2")) {
            service.engageModule(server.getAxisConfiguration().getModule(module));
        }
        new SimpleHTTPServer(server, Integer.parseInt(args[1])).start();
        ConfigurationContext clients = ConfigurationContextFactory.createConfigurationContextFromFileSystem(args[0]);
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 1; i < words.length; i += 3) {
                int at = i;
                all.add(CompletableFuture.runAsync(() ->
                    client(clients, Integer.parseInt(words[0]), words[at], words[at + 1], words[at + 2])));
            }
            for (CompletableFuture<Void> one : all) {
                one.get();
            }
            say("done");
        }
        System.exit(0);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    /** A ledger that prints what it gets. */
    private static class Ledger extends AbstractInOutMessageReceiver {
        private int count;

        @Override
        public synchronized void invokeBusinessLogic(MessageContext in, MessageContext out) throws AxisFault {
            say("entry " + value(in.getEnvelope().getBody().getFirstElement(), "id"));
            count++;
            SOAPEnvelope envelope = getSOAPFactory(in).getDefaultEnvelope();
            envelope.getBody().addChild(element("addResponse", "count", Integer.toString(count)));
            out.setEnvelope(envelope);
        }
    }

    private static void client(ConfigurationContext context, int count, String url, String version, String name) {
        try {
            ServiceClient client = new ServiceClient(context, null);
            client.engageModule("addressing");
            client.engageModule("sandesha2");
            Options options = new Options();
            options.setTo(new EndpointReference(url));
            options.setAction(ADD);
            options.setTimeOutInMilliSeconds(60000);
            options.setProperty(SandeshaClientConstants.RM_SPEC_VERSION, version.equals("1.0")
                ? Sandesha2Constants.SPEC_VERSIONS.v1_0 : Sandesha2Constants.SPEC_VERSIONS.v1_1);
            options.setProperty(SandeshaClientConstants.SEQUENCE_KEY, name);
            client.setOptions(options);
            for (int i = 0; i < count; i++) {
                if (i == count - 1) {
                    options.setProperty(SandeshaClientConstants.LAST_MESSAGE, "true");
                }
                OMElement reply = client.sendReceive(element("add", "id", name + "-" + i, "amount", "" + i));
                say("reply " + name + "-" + i + " " + value(reply, "count"));
            }
        } catch (AxisFault e) {
            throw new IllegalStateException(e);
        }
    }

    private static OMElement element(String name, String... children) {
        OMNamespace space = OM.createOMNamespace(NAMESPACE, "p");
        OMElement e = OM.createOMElement(name, space);
        for (int i = 0; i < children.length; i += 2) {
            OM.createOMElement(children[i], space, e).setText(children[i + 1]);
        }
        return e;
    }

    private static String value(OMElement e, String name) {
        return e.getFirstChildWithName(new QName(NAMESPACE, name)).getText();
    }
}

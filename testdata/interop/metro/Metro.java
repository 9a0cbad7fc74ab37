import java.io.BufferedReader;
import java.io.Closeable;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.io.StringWriter;
import java.net.URL;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.namespace.QName;
import javax.xml.transform.Source;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import javax.xml.ws.Dispatch;
import javax.xml.ws.Endpoint;
import javax.xml.ws.Provider;
import javax.xml.ws.Service;
import javax.xml.ws.ServiceMode;
import javax.xml.ws.WebServiceProvider;

/**
 * Ledgers and clients of ledgers with Metro, which do what the policies in descriptions say:
 * Metro URL WSDL PORT ... Prints "ready", then each entry that a ledger gets. A line of its input
 * is how many entries clients send, and a description and a name for each; it prints each reply,
 * and "done" when their sequences have ended.
 */
public class Metro {
    private static final String NAMESPACE = "urn:hhfr:peer:1";

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < args.length; i += 3) {
            Endpoint ledger = Endpoint.create(new Ledger());
            ledger.setMetadata(List.of(new StreamSource(new URL(args[i + 1]).openStream(), args[i + 1])));
            ledger.setProperties(new HashMap<>(Map.of(Endpoint.WSDL_SERVICE, new QName(NAMESPACE, "ledger"),
                Endpoint.WSDL_PORT, new QName(NAMESPACE, args[i + 2]))));
            ledger.publish(args[i]);
        }
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 1; i < words.length; i += 2) {
                String description = words[i];
                String name = words[i + 1];
                all.add(CompletableFuture.runAsync(() -> client(Integer.parseInt(words[0]), description, name)));
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
    @WebServiceProvider
    @ServiceMode(Service.Mode.PAYLOAD)
    public static class Ledger implements Provider<Source> {
        private int count;

        @Override
        public synchronized Source invoke(Source request) {
            say("entry " + value(request, "id"));
            count++;
            return source("<addResponse xmlns=\"" + NAMESPACE + "\"><count>" + count + "</count></addResponse>");
        }
    }

    private static void client(int count, String description, String name) {
        try {
            Service service = Service.create(new URL(description), new QName(NAMESPACE, "ledger"));
            Dispatch<Source> dispatch = service.createDispatch(service.getPorts().next(), Source.class,
                Service.Mode.PAYLOAD);
            for (int i = 0; i < count; i++) {
                Source reply = dispatch.invoke(source("<add xmlns=\"" + NAMESPACE + "\"><id>" + name + "-" + i
                    + "</id><amount>" + i + "</amount></add>"));
                say("reply " + name + "-" + i + " " + value(reply, "count"));
            }
            ((Closeable) dispatch).close();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static Source source(String xml) {
        return new StreamSource(new StringReader(xml));
    }

    private static String value(Source s, String name) {
        try {
            StringWriter w = new StringWriter();
            TransformerFactory.newInstance().newTransformer().transform(s, new StreamResult(w));
            Matcher m = Pattern.compile("<" + name + "[^>]*>([^<]*)<").matcher(w.toString());
            return m.find() ? m.group(1) : "none in " + w;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}

import jakarta.xml.bind.JAXBElement;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.xml.namespace.QName;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.cxf.endpoint.Client;
import org.apache.cxf.jaxb.JAXBDataBinding;
import org.apache.cxf.jaxws.endpoint.dynamic.JaxWsDynamicClientFactory;
import org.apache.cxf.service.model.BindingOperationInfo;
import org.apache.cxf.service.model.EndpointInfo;
import org.apache.cxf.service.model.ServiceInfo;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.xml.sax.InputSource;

/**
 * Calls mocks of WSDLs with Apache CXF and the classes that it makes of each. A line of input is a
 * call: the URL of the WSDL, a binding, an operation, and its envelope in base64, with tabs between
 * them. It is answered by a line: the class of the reply, or what went wrong.
 */
public class Mocked {
    static final Map<String, Client> clients = new HashMap<>();

    /** The client of a binding. */
    static Client client(String wsdl, String binding) {
        return clients.computeIfAbsent(wsdl + " " + binding, key -> {
            // Each set of classes is found by a loader of its own, which the one before must not be the parent of.
            Thread.currentThread().setContextClassLoader(Mocked.class.getClassLoader());
            Client first = JaxWsDynamicClientFactory.newInstance().createClient(wsdl);
            for (ServiceInfo s : first.getEndpoint().getService().getServiceInfos()) {
                for (EndpointInfo e : s.getEndpoints()) {
                    if (e.getBinding().getName().getLocalPart().equals(binding)) {
                        return e.equals(first.getEndpoint().getEndpointInfo()) ? first
                            : JaxWsDynamicClientFactory.newInstance().createClient(wsdl, s.getName(), e.getName());
                    }
                }
            }
            throw new IllegalArgumentException("no port of " + binding);
        });
    }

    static String call(String wsdl, String binding, String operation, String envelope) throws Exception {
        Client c = client(wsdl, binding);
        DocumentBuilderFactory f = DocumentBuilderFactory.newInstance();
        f.setNamespaceAware(true);
        Element root = f.newDocumentBuilder().parse(new InputSource(new StringReader(envelope))).getDocumentElement();
        Node content = root.getLastChild().getFirstChild();
        JAXBDataBinding data = (JAXBDataBinding) c.getEndpoint().getService().getDataBinding();
        Object[] request = {};
        if (content != null) {
            Object read = data.getContext().createUnmarshaller().unmarshal(content);
            request = new Object[] {read instanceof JAXBElement<?> e ? e.getValue() : read};
        }
        BindingOperationInfo found = null;
        for (BindingOperationInfo op : c.getEndpoint().getEndpointInfo().getBinding().getOperations()) {
            if (op.getName().getLocalPart().equals(operation)) {
                found = op;
            }
        }
        Object[] reply = c.invokeWrapped(new QName(found.getName().getNamespaceURI(), operation), request);
        return reply.length == 0 ? "nothing" : reply[0].getClass().getSimpleName();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t");
            try {
                System.out.println(call(parts[0], parts[1], parts[2],
                    new String(Base64.getDecoder().decode(parts[3]), StandardCharsets.UTF_8)));
            } catch (Exception e) {
                System.out.println(parts[2] + ": " + e);
                e.printStackTrace();
            }
        }
        System.exit(0);
    }
}

import java.net.ServerSocket;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.callback.CallbackHandler;
import org.apache.axis.transport.http.SimpleAxisServer;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;
import org.apache.cxf.ws.security.wss4j.WSS4JInInterceptor;
import org.apache.wss4j.common.ext.WSPasswordCallback;
import org.apache.wss4j.dom.handler.WSHandlerConstants;

/**
 * Services for hhfr call: one of CXF that wants a UsernameToken and a timestamp, ann with secret, and
 * those of server-config.wsdd in the working directory with Axis 1.4. Prints the port of each.
 */
public class Called {
    public static void main(String[] args) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        CallbackHandler password = all -> {
            WSPasswordCallback asked = (WSPasswordCallback) all[0];
            if (asked.getIdentifier().equals("ann")) {
                asked.setPassword("secret");
            }
        };
        JaxWsServerFactoryBean server = new JaxWsServerFactoryBean();
        server.setServiceClass(Stacks.Service.class);
        server.setServiceBean(new Stacks.Service());
        server.setAddress("http://127.0.0.1:" + port + "/login");
        server.getInInterceptors().add(new WSS4JInInterceptor(new HashMap<>(Map.of(
            WSHandlerConstants.ACTION, WSHandlerConstants.USERNAME_TOKEN + " " + WSHandlerConstants.TIMESTAMP,
            WSHandlerConstants.PW_CALLBACK_REF, password))));
        server.create();
        SimpleAxisServer axis = new SimpleAxisServer();
        axis.setServerSocket(new ServerSocket(0));
        axis.start(true);
        System.out.println(port + " " + axis.getServerSocket().getLocalPort());
        Thread.currentThread().join(); // until it is ended
    }
}

import jakarta.jws.WebMethod;
import jakarta.jws.WebParam;
import jakarta.jws.WebResult;
import jakarta.jws.WebService;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.cxf.jaxws.JaxWsServerFactoryBean;

/**
 * A CXF server of load.wsdl: Load RANGES, the ranges of addresses as hhfr has them (distances of
 * their ends, as varints). Prints its port; ends with its input.
 */
public class Load {
    static final String NS = "urn:hhfr:peer:1";

    @WebService(targetNamespace = NS, name = "loadPortType")
    public interface Port {
        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        boolean geoip(@WebParam(name = "address", targetNamespace = NS) String address);

        @WebMethod
        @WebResult(name = "result", targetNamespace = NS)
        float sum(@WebParam(name = "item", targetNamespace = NS) List<Float> item);
    }

    @WebService(targetNamespace = NS, serviceName = "load", endpointInterface = "Load$Port")
    public static class Service implements Port {
        private final long[] first, last;

        Service(byte[] packed) {
            long[] bounds = new long[packed.length];
            int count = 0, shift = 0;
            long at = 0;
            for (byte b : packed) {
                at += (long) (b & 127) << shift;
                shift += 7;
                if (b >= 0) {
                    bounds[count++] = at;
                    shift = 0;
                }
            }
            first = new long[count / 2];
            last = new long[count / 2];
            for (int i = 0; i < first.length; i++) {
                first[i] = bounds[2 * i];
                last[i] = bounds[2 * i + 1];
            }
        }

        public boolean geoip(String address) {
            String[] parts = address.strip().split("\\.", -1);
            if (parts.length != 4) {
                throw new IllegalArgumentException("no IPv4 address");
            }
            long v = 0;
            for (String part : parts) {
                int one = Integer.parseInt(part);
                if (one < 0 || one > 255) {
                    throw new IllegalArgumentException("no IPv4 address");
                }
                v = v << 8 | one;
            }
            int i = Arrays.binarySearch(last, v);
            if (i < 0) {
                i = -i - 1;
            }
            return i < first.length && first[i] <= v;
        }

        public float sum(List<Float> item) {
            double sum = 0;
            for (float v : item) {
                sum += v;
            }
            return (float) sum;
        }
    }

    public static void main(String[] args) throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        JaxWsServerFactoryBean server = new JaxWsServerFactoryBean();
        server.setServiceClass(Service.class);
        server.setServiceBean(new Service(Files.readAllBytes(Path.of(args[0]))));
        server.setAddress("http://127.0.0.1:" + port + "/load");
        server.create();
        System.out.println(port);
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}

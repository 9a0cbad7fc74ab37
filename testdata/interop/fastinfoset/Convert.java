import com.sun.xml.fastinfoset.sax.AttributesHolder;
import com.sun.xml.fastinfoset.sax.SAXDocumentSerializer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Stream;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import org.jvnet.fastinfoset.FastInfosetSource;
import org.xml.sax.Attributes;
import org.xml.sax.SAXException;
import org.xml.sax.XMLReader;
import org.xml.sax.ext.DefaultHandler2;

/**
 * Converts the files of a folder by the library FastInfoset: from .xml to .finf by SAX, from .fi to .fi.xml. With "typed"
 * it writes documents of typed values, and beside each the same as XML.
 */
public class Convert {
    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[1]);
        switch (args[0]) {
            case "from-xml": each(folder, ".xml", Convert::fromXML); break;
            case "to-xml": each(folder, ".fi", Convert::toXML); break;
            case "typed": typed(folder); break;
            default: throw new IllegalArgumentException(args[0]);
        }
    }

    interface Step { void take(Path file) throws Exception; }

    static void each(Path folder, String ending, Step step) throws Exception {
        Path[] files;
        try (Stream<Path> list = Files.list(folder)) {
            files = list.filter(f -> f.toString().endsWith(ending)).toArray(Path[]::new);
        }
        for (Path file : files) {
            try {
                step.take(file);
            } catch (Exception e) {
                throw new Exception(file.toString(), e);
            }
        }
    }

    /** Has the text between two tags in one piece, which parsers give in several. */
    static class Joined extends DefaultHandler2 {
        final SAXDocumentSerializer to;
        final StringBuilder text = new StringBuilder();

        Joined(SAXDocumentSerializer to) { this.to = to; }

        void flush() throws SAXException {
            char[] all = text.toString().toCharArray();
            text.setLength(0);
            if (all.length > 0) to.characters(all, 0, all.length);
        }

        @Override public void characters(char[] ch, int start, int length) { text.append(ch, start, length); }

        @Override public void startDocument() throws SAXException { to.startDocument(); }

        @Override public void endDocument() throws SAXException { to.endDocument(); }

        @Override public void startPrefixMapping(String prefix, String uri) throws SAXException {
            flush();
            to.startPrefixMapping(prefix, uri);
        }

        @Override public void startElement(String uri, String local, String name, Attributes attrs) throws SAXException {
            flush();
            to.startElement(uri, local, name, attrs);
        }

        @Override public void endElement(String uri, String local, String name) throws SAXException {
            flush();
            to.endElement(uri, local, name);
        }

        @Override public void comment(char[] ch, int start, int length) throws SAXException {
            flush();
            to.comment(ch, start, length);
        }

        @Override public void processingInstruction(String target, String data) throws SAXException {
            flush();
            to.processingInstruction(target, data);
        }
    }

    static void fromXML(Path file) throws Exception {
        SAXParserFactory factory = SAXParserFactory.newInstance();
        factory.setNamespaceAware(true);
        XMLReader reader = factory.newSAXParser().getXMLReader();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        SAXDocumentSerializer to = new SAXDocumentSerializer();
        to.setOutputStream(out);
        Joined joined = new Joined(to);
        reader.setContentHandler(joined);
        reader.setProperty("http://xml.org/sax/properties/lexical-handler", joined);
        reader.parse(file.toUri().toString());
        Files.write(Path.of(file.toString().replaceAll("xml$", "finf")), out.toByteArray());
    }

    static void toXML(Path file) throws Exception {
        Transformer same = TransformerFactory.newInstance().newTransformer();
        same.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        same.transform(new FastInfosetSource(new ByteArrayInputStream(Files.readAllBytes(file))), new StreamResult(out));
        Files.write(Path.of(file + ".xml"), out.toByteArray());
    }

    static void typed(Path folder) throws Exception {
        Random random = new Random(1);
        for (int n = 1; n < 40; n++) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            SAXDocumentSerializer to = new SAXDocumentSerializer();
            StringBuilder text = new StringBuilder("<v>");
            to.setOutputStream(out);
            to.startDocument();
            to.startElement("", "v", "v", new AttributesHolder());
            short[] shorts = new short[n];
            int[] ints = new int[n];
            long[] longs = new long[n];
            boolean[] booleans = new boolean[n];
            float[] floats = new float[n];
            double[] doubles = new double[n];
            long[] uuids = new long[2 * n];
            StringBuilder[] texts = new StringBuilder[7];
            for (int i = 0; i < texts.length; i++) texts[i] = new StringBuilder();
            for (int i = 0; i < n; i++) {
                String between = i == 0 ? "" : " ";
                texts[0].append(between).append(shorts[i] = (short) random.nextInt());
                texts[1].append(between).append(ints[i] = random.nextInt());
                texts[2].append(between).append(longs[i] = random.nextLong());
                texts[3].append(between).append(booleans[i] = random.nextBoolean());
                // Numbers whose text in Java before 19 is as short as it can be.
                texts[4].append(between).append(floats[i] = (short) random.nextInt() / 8f);
                texts[5].append(between).append(doubles[i] = random.nextInt() / 8d);
                UUID uuid = new UUID(uuids[2 * i] = random.nextLong(), uuids[2 * i + 1] = random.nextLong());
                texts[6].append(between).append(uuid);
            }
            part(to, text, "s", texts[0], () -> to.shorts(shorts, 0, shorts.length));
            part(to, text, "i", texts[1], () -> to.ints(ints, 0, ints.length));
            part(to, text, "l", texts[2], () -> to.longs(longs, 0, longs.length));
            // Of others the library writes too few bytes.
            if (n <= 12 || n % 8 < 5) part(to, text, "b", texts[3], () -> to.booleans(booleans, 0, booleans.length));
            part(to, text, "f", texts[4], () -> to.floats(floats, 0, floats.length));
            part(to, text, "d", texts[5], () -> to.doubles(doubles, 0, doubles.length));
            part(to, text, "u", texts[6], () -> to.uuids(uuids, 0, uuids.length));
            to.endElement("", "v", "v");
            to.endDocument();
            Files.write(folder.resolve(n + ".finf"), out.toByteArray());
            Files.writeString(folder.resolve(n + ".xml"), text + "</v>");
        }
    }

    interface Values { void write() throws Exception; }

    static void part(SAXDocumentSerializer to, StringBuilder text, String name, StringBuilder values, Values write) throws Exception {
        to.startElement("", name, name, new AttributesHolder());
        write.write();
        to.endElement("", name, name);
        text.append('<').append(name).append('>').append(values).append("</").append(name).append('>');
    }
}

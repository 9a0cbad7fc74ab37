import com.siemens.ct.exi.core.CodingMode;
import com.siemens.ct.exi.core.EXIFactory;
import com.siemens.ct.exi.core.FidelityOptions;
import com.siemens.ct.exi.core.helpers.DefaultEXIFactory;
import com.siemens.ct.exi.grammars.GrammarFactory;
import com.siemens.ct.exi.main.api.sax.EXIResult;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.file.Files;
import java.util.Arrays;
import javax.xml.parsers.SAXParserFactory;
import org.xml.sax.InputSource;
import org.xml.sax.XMLReader;

/** Sizes SCHEMA DIR...: the mean size of the schema-informed, strict, bit-packed EXI of the files of each folder, a line each: octets and the folder. */
class Sizes {
    public static void main(String[] args) throws Exception {
        EXIFactory factory = DefaultEXIFactory.newInstance();
        factory.setFidelityOptions(FidelityOptions.createStrict());
        factory.setCodingMode(CodingMode.BIT_PACKED);
        factory.setGrammars(GrammarFactory.newInstance().createGrammars(args[0]));
        SAXParserFactory parsers = SAXParserFactory.newInstance();
        parsers.setNamespaceAware(true);
        for (String dir : Arrays.asList(args).subList(1, args.length)) {
            File[] files = new File(dir).listFiles();
            long sum = 0;
            for (File file : files) {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                EXIResult exi = new EXIResult(factory);
                exi.setOutputStream(out);
                XMLReader reader = parsers.newSAXParser().getXMLReader();
                reader.setContentHandler(exi.getHandler());
                reader.parse(new InputSource(Files.newInputStream(file.toPath())));
                sum += out.size();
            }
            System.out.println((double) sum / files.length + " " + dir);
        }
    }
}

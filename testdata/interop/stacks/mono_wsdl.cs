// Writes classes that call what descriptions describe, as wsdl.exe does: mono_wsdl OUT.cs NAMESPACE=WSDL…. Those for SOAP 1.1 and 1.2 are
// in the namespaces NAMESPACE11 and NAMESPACE12.
using System.CodeDom;
using System.CodeDom.Compiler;
using System.IO;
using System.Net;
using System.Web.Services.Description;
using Microsoft.CSharp;

static class Wsdl {
	static void Main(string[] args) {
		var all = new CodeCompileUnit();
		for (int i = 1; i < args.Length; i++) {
			string[] one = args[i].Split(new[] { '=' }, 2);
			foreach (string protocol in new[] { "Soap", "Soap12" }) {
				var importer = new ServiceDescriptionImporter { ProtocolName = protocol };
				using (WebResponse r = WebRequest.Create(one[1]).GetResponse())
					importer.AddServiceDescription(ServiceDescription.Read(r.GetResponseStream()), null, null);
				var names = new CodeNamespace(one[0] + (protocol == "Soap" ? "11" : "12"));
				all.Namespaces.Add(names);
				importer.Import(names, all);
			}
		}
		using (var file = new StreamWriter(args[0]))
			new CSharpCodeProvider().GenerateCodeFromCompileUnit(all, file, new CodeGeneratorOptions());
	}
}

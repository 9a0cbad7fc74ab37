// Calls the services of hhfr serve in SOAP 1.1 with the classes of their descriptions; with 12 and 1.2 for 11 and 1.1 throughout, in 1.2.
using System;
using System.Globalization;
using System.Linq;
using System.Web.Services.Protocols;
using Services11;

static class Calls11 {
	static void Say(string name, object said) {
		Console.WriteLine("{0} 1.1: {1}", name, string.Format(CultureInfo.InvariantCulture, "{0}", said));
	}

	public static void All(string url) {
		Say("concat", new concat { Url = url + "/concat" }.Callconcat(new[] { "thin ", " links", "é<&>" }));
		Say("sum", new sum { Url = url + "/sum" }.Callsum(new[] { 1.5f, -0.25f }));
		var rows = new[] { new Record { text = "<one>", number = -1, flag = true }, new Record { text = "zwei é", number = 2147483647 } };
		new records { Url = url + "/records" }.Callrecords(ref rows);
		Say("records", string.Join(", ", rows.Select(r => r.text + " " + r.number + (r.flag ? " true" : " false"))));
		var geoip = new geoip { Url = url + "/geoip" };
		Say("geoip", geoip.Callgeoip("129.125.102.100") ? "true" : "false");
		try {
			Say("refused", geoip.Callgeoip("nowhere"));
		} catch (SoapException e) {
			Say("refused", e.Message);
		}
		Say("blob", Convert.ToBase64String(new blob { Url = url + "/blob" }.Callblob(30, 7, true)));
		DateTime time;
		Say("ticker", new ticker { Url = url + "/ticker" }.Callticker(out time) > 0 ? "ticks" : "no tick");
		var ledger = new ledger { Url = url + "/ledger" };
		byte[] sum;
		readResponseEntry[] entries;
		ledger.read(ledger.add("a-1", -5, out sum), true, 1, true, out sum, out entries);
		Say("ledger", entries[0].id + " " + entries[0].amount);
		var context = new ContextService { Url = url + "/context" };
		var begun = context.begin(new begin { type = "urn:example:type", timeout = 60, timeoutSpecified = true });
		Say("context", context.getStatus(new getStatus { contextidentifier = begun.context.contextidentifier }));
	}
}

// Calls servers of stacks.wsdl, and the services of hhfr serve, with node-soap: node_client.js WSDL KEY.pem CERT.pem PAYLOAD CALL=URL…. Prints a line for each call.
const fs = require('fs')
const soap = require('soap')
const services = require('./services.js')

const [wsdl, key, cert, payload, ...calls] = process.argv.slice(2)
const rows = Array.from({ length: 200 }, (_, i) => ({ text: `row ${i}: <&> é`, number: i * 3 - 100, flag: i % 3 === 0 }))

async function call(name, url) {
  const client = await soap.createClientAsync(wsdl, { endpoint: url })
  if (name === 'signed') {
    client.setSecurity(new soap.WSSecurityCert(fs.readFileSync(key), fs.readFileSync(cert), '', {
      hasTimeStamp: false,
      digestAlgorithm: 'http://www.w3.org/2001/04/xmlenc#sha256',
      signatureAlgorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    }))
  }
  if (name === 'addressed') {
    const wsa = 'xmlns:wsa="http://www.w3.org/2005/08/addressing"'
    client.addSoapHeader(`<wsa:Action ${wsa}>urn:hhfr:peer:1/stacksPortType/recordsRequest</wsa:Action>` +
      `<wsa:MessageID ${wsa}>urn:uuid:${require('crypto').randomUUID()}</wsa:MessageID><wsa:To ${wsa}>${url}</wsa:To>`)
  }
  switch (name) {
    case 'fault':
      return client.recordsAsync({ record: [{ text: 'refuse', number: 0, flag: false }] }).then(() => 'no fault',
        (e) => e.root?.Envelope?.Body?.Fault?.faultstring ?? String(e))
    case 'note':
      await client.noteAsync({ text: 'remember <this>' })
      return 'sent'
    case 'upload': {
      const include = '<upload xmlns="urn:hhfr:peer:1"><data><xop:Include xmlns:xop="http://www.w3.org/2004/08/xop/include" href="cid:payload"/></data></upload>'
      const [got] = await client.uploadAsync({ _xml: include }, {
        attachments: [{ mimetype: 'application/octet-stream', contentId: 'payload', name: 'payload', body: fs.readFileSync(payload) }],
        forceMTOM: true,
      })
      return `${got.size} ${got.sha256}`
    }
    default: {
      let got
      for (let i = 0; i < 3; i++) [got] = await client.recordsAsync({ record: rows })
      return JSON.stringify(got.record) === JSON.stringify(rows) ? `${got.record.length} rows` : 'other rows'
    }
  }
}

(async () => {
  for (const one of calls) {
    const at = one.indexOf('=')
    const [name, url] = [one.slice(0, at), one.slice(at + 1)]
    if (name === 'services') {
      await services(url, async (wsdl, version) => {
        const client = await soap.createClientAsync(wsdl, { forceSoap12Headers: version === '1.2' })
        return (service, port, operation, values) => new Promise((resolve, reject) =>
          client[service][port][operation](values, (error, result) => error ? reject(error) : resolve(result)))
      })
      continue
    }
    console.log(`${name}: ${await call(name, url).catch((e) => `failed: ${e.message}`)}`)
  }
})()

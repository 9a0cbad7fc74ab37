// Calls servers of stacks.wsdl, and the services of hhfr serve, with strong-soap: strong_client.js WSDL CALL=URL…. Prints a line for each call.
const { soap } = require('strong-soap')
const services = require('./services.js')

const [wsdl, ...calls] = process.argv.slice(2)
const rows = Array.from({ length: 200 }, (_, i) => ({ text: `row ${i}: <&> é`, number: i * 3 - 100, flag: i % 3 === 0 }))

const client = (wsdl, options = {}) => new Promise((resolve, reject) =>
  soap.createClient(wsdl, options, (error, made) => error ? reject(error) : resolve(made)))

// said is the promise of what an operation answers. strong-soap knows an answer by its name: that of the operation with Response, Out or
// Output behind it. One of another name is read from the envelope.
const said = (client, operation, values) => new Promise((resolve, reject) =>
  operation(values, (error, result, envelope) => error ? reject(error)
    : resolve(result ?? (envelope && Object.values(client.xmlHandler.xmlToJson(null, envelope, null).Body)[0]))))

async function call(name, url) {
  const made = await client(wsdl, { endpoint: url })
  switch (name) {
    case 'fault':
      return said(made, made.records, { record: [{ text: 'refuse', number: 0, flag: false }] }).then(() => 'no fault',
        (e) => e.root?.Envelope?.Body?.Fault?.faultstring ?? String(e))
    case 'note':
      await said(made, made.note, { text: 'remember <this>' })
      return 'sent'
    default: {
      let got
      for (let i = 0; i < 3; i++) got = await said(made, made.records, { record: rows })
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
        const made = await client(wsdl, { forceSoapVersion: version })
        return (service, port, operation, values) => said(made, made[service][port][operation], values)
      })
      continue
    }
    console.log(`${name}: ${await call(name, url).catch((e) => `failed: ${e.message}`)}`)
  }
})()

// Calls each service of hhfr serve by its own description: services(BASE, CLIENT), where CLIENT(WSDL, VERSION) gives a function of a port
// and an operation with its values. Prints a line for each call.
module.exports = async function services(base, client) {
  for (const version of ['1.1', '1.2']) {
    const digits = version.replace('.', '')
    const say = (name, said) => console.log(`${name} ${version}: ${said}`)
    const call = async (name, values, operation = name, service = name, port = name + 'Soap' + digits) =>
      (await client(`${base}/${name}?wsdl`, version))(service, port, operation, values)
    say('concat', (await call('concat', { item: ['thin ', ' links', 'é<&>'] })).result)
    say('sum', (await call('sum', { item: [1.5, -0.25] })).result)
    const { record } = await call('records', { record: [{ text: '<one>', number: -1, flag: true }, { text: 'zwei é', number: 2147483647, flag: false }] })
    say('records', record.map((r) => `${r.text} ${r.number} ${r.flag}`).join(', '))
    say('geoip', (await call('geoip', { address: '129.125.102.100' })).result)
    say('refused', await call('geoip', { address: 'nowhere' }).catch((e) => {
      const fault = e.root.Envelope.Body.Fault
      return fault.faultstring ?? fault.Reason.Text.$value ?? fault.Reason.Text
    }))
    say('blob', (await call('blob', { size: 30, seed: 7 })).payload)
    say('ticker', (await call('ticker', {})).number > 0 ? 'ticks' : 'no tick')
    const { count } = await call('ledger', { id: 'a-1', amount: -5 }, 'add')
    const entry = [(await call('ledger', { from: count, most: 1 }, 'read')).entry].flat()[0]
    say('ledger', `${entry.id} ${entry.amount}`)
    const context = (values, operation) => call('context', values, operation, 'ContextService', 'Soap' + digits)
    const begun = await context({ type: 'urn:example:type', timeout: 60 }, 'begin')
    say('context', await context({ 'context-identifier': begun.context['context-identifier'] }, 'getStatus'))
  }
}

import t from 'tap'
import { readConfig, type UsableConfig } from '../../src/config/config.ts'
import { SettingsInForce } from '../../src/config/settings-in-force.ts'

function read(file: string): UsableConfig {
  const result = readConfig({
    argv: ['--config=/c.yaml', '--server-addr=http://a'],
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous', NODEHUB_PROXY_PORT: '8000' },
    readFile: () => file,
    hostname: 'edge-1',
  })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result
}

void t.test('a setting that waits for the next start shows both values', async (t) => {
  const first = read('serve-port: 1\n')
  const settings = new SettingsInForce(first)
  const of = (name: string) => settings.report().settings.find((one) => one.name === name)
  t.match(of('serve-port'), { value: '1', source: 'file' })
  t.match(of('proxy-port'), { value: '8000', source: 'environment', origin: 'NODEHUB_PROXY_PORT' })
  t.match(of('node-name'), { value: 'edge-1', source: 'default' })

  const second = read('log-level: debug\n')
  const live = second.liveUnder(first.config)
  const change = { changed: [], unreported: [], notes: [] }
  settings.changed({ ...change, read: second, live, waiting: ['serve-port'] })
  t.match(of('serve-port'), { value: '1', next: { value: '10267', source: 'default' } })
  t.match(of('log-level'), { value: 'debug', origin: '/c.yaml: log-level' })

  settings.unusable(['wrong'])
  t.strictSame(settings.report().mistakes, ['wrong'])
  settings.changed({ ...change, read: first, live: first.liveUnder(first.config), waiting: [] })
  t.notOk(of('serve-port')?.next)
  t.strictSame(settings.report().mistakes, [])
})

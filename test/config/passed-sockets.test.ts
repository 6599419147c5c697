import t from 'tap'
import { readConfig, type ConfigResult } from '../../src/config/config.ts'
import type { PassedSocket } from '../../src/config/passed-sockets.ts'

const at = (port: number, address = '127.0.0.1') => ({ address, port })

const read = (passed: readonly PassedSocket[], ...flags: readonly string[]): ConfigResult =>
  readConfig({
    argv: ['--server-addr=https://a', ...flags],
    env: {},
    hostname: 'n',
    readFile: () => '',
    passed,
  })

void t.test('a socket goes to the listener it is named after, wherever it is bound', async (t) => {
  const passed = [
    { fd: 3, name: 'ops', at: at(1) },
    { fd: 4, name: 'proxy', at: at(2, '0.0.0.0') },
  ]
  const result = read(passed)
  t.match(result, { config: { sockets: { ops: 3, proxy: 4 } } })
  t.ok(
    'notes' in result &&
      result.notes.includes(
        'the passed socket "proxy" (file descriptor 4, bound to 0.0.0.0 port 2) is served, and nothing at 127.0.0.1 port 10261',
      ),
    'which is told',
  )
})

void t.test('else it goes to the listener whose address it is bound to', async (t) => {
  const passed = [
    { fd: 3, name: 'nodehub.socket', at: at(10261) },
    { fd: 4, name: '', at: at(7, '0:0:0:0:0:0:0:1') },
    { fd: 5, name: '', at: at(10268) },
  ]
  t.match(read(passed, '--bind-address=::1', '--serve-port=7'), {
    config: { sockets: { proxy: 3, ops: 4, 'proxy-secure': 5 } },
  })
  t.match(read([]), { config: { sockets: {} } }, 'a listener without one opens its own')
})

void t.test('a socket that belongs to no listener is a mistake', async (t) => {
  const wrong = (socket: PassedSocket, ...flags: string[]): unknown => read([socket], ...flags)
  t.match(wrong({ fd: 3, name: 'nodehub.socket', at: at(10261, '0.0.0.0') }), {
    mistakes: [
      'the passed socket "nodehub.socket" (file descriptor 3, bound to 0.0.0.0 port 10261) belongs to no listener: name it proxy or proxy-secure or ops, or bind it where one listens',
    ],
  })
  t.match(wrong({ fd: 3, name: 'proxy', at: undefined }), {
    mistakes: ['the passed socket "proxy" (file descriptor 3) is no TCP socket that listens'],
  })
  t.match(wrong({ fd: 3, name: 'proxy', at: at(1) }, '--plain-proxy=false'), {
    mistakes: [/belongs to no listener: name it proxy-secure or ops,/],
  })
})

void t.test('two sockets for one listener are a mistake', async (t) => {
  const passed = [
    { fd: 3, name: 'proxy', at: at(1) },
    { fd: 4, name: '', at: at(10261) },
  ]
  t.match(read(passed), { mistakes: [/\(file descriptor 4, .*\) is a second one for proxy/] })
})

import t from 'tap'
import { readConfig, type ConfigResult } from '../../src/config/config.ts'
import { addressesOf, type PassedSocket } from '../../src/config/passed-sockets.ts'

const at = (port: number, address = '127.0.0.1') => ({ address, port })

const read = (passed: readonly PassedSocket[], ...flags: readonly string[]): ConfigResult =>
  readConfig({
    argv: ['--server-addr=https://a', ...flags],
    env: { NODEHUB_BOOTSTRAP_MODE: 'anonymous' },
    hostname: 'n',
    readFile: () => '',
    passed,
  })

/** The file descriptors that each listener was given. */
function fds(passed: readonly PassedSocket[], ...flags: readonly string[]) {
  const result = read(passed, ...flags)
  if ('mistakes' in result) return result.mistakes
  return Object.fromEntries(
    Object.entries(result.config.sockets).map(([name, sockets]) => [
      name,
      sockets.map(({ fd }) => fd),
    ]),
  )
}

void t.test('a listener on loopback listens there in both families', async (t) => {
  t.strictSame(addressesOf('127.0.0.1'), ['127.0.0.1', '::1'])
  t.strictSame(addressesOf('0:0:0:0:0:0:0:1'), ['::1', '127.0.0.1'])
  t.strictSame(addressesOf('0.0.0.0'), ['0.0.0.0', '::1'], 'which IPv4 alone would leave free')
  for (const address of ['::', '10.0.0.1', '127.0.0.2', 'fe80::1%eth0'])
    t.strictSame(addressesOf(address), [address])
})

void t.test('a socket goes to the listener that has its address', async (t) => {
  const passed = [
    { fd: 3, at: at(10261) },
    { fd: 4, at: at(7, '0:0:0:0:0:0:0:1') },
    { fd: 5, at: at(10268) },
    { fd: 6, at: at(10261, '::1') },
    { fd: 7, at: at(7) },
  ]
  t.strictSame(fds(passed, '--bind-address=::1', '--serve-port=7'), {
    proxy: [3, 6],
    ops: [4, 7],
    'proxy-secure': [5],
  })
  t.match(read([]), { config: { sockets: {} } }, 'a listener without one opens its own')
})

void t.test('the plain port has its socket where it refuses every caller, too', async (t) => {
  t.strictSame(fds([{ fd: 3, at: at(10261) }], '--plain-proxy=false'), { proxy: [3] })
})

void t.test('a socket at the dummy interface is of the proxy with its port', async (t) => {
  const passed = [
    { fd: 3, at: at(10261) },
    { fd: 4, at: at(10261, '169.254.2.1') },
    { fd: 5, at: at(10268, '169.254.2.1') },
  ]
  t.strictSame(fds(passed), { proxy: [3, 4], 'proxy-secure': [5] })
  t.match(read([{ fd: 3, at: at(10267, '169.254.2.1') }]), {
    mistakes: [/belongs to no listener/],
  })
})

void t.test('a socket that belongs to no listener is a mistake', async (t) => {
  const wrong = (socket: PassedSocket): unknown => read([socket])
  t.match(wrong({ fd: 3, at: at(10261, '0.0.0.0') }), {
    mistakes: [
      'the passed socket (file descriptor 3, bound to 0.0.0.0 port 10261) belongs to no listener: bind it where one listens',
    ],
  })
  t.match(wrong({ fd: 3, at: undefined }), {
    mistakes: ['the passed socket (file descriptor 3) is no TCP socket that listens'],
  })
})

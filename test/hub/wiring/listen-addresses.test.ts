import t from 'tap'
import type { ListenerSocket } from '../../../src/config/passed-sockets.ts'
import { listenAddresses } from '../../../src/hub/wiring/listen-addresses.ts'
import { testConfig } from '../../kit/hub-config.ts'

const config = testConfig(['--server-addr=https://a'])

const placesWith = (port: number, passed: readonly ListenerSocket[]) =>
  listenAddresses(
    { ...config, proxy: { ...config.proxy, port }, sockets: { proxy: passed } },
    'proxy',
  )

const [ipv4, ipv6] = ['127.0.0.1', '::1'].map((host, i) => ({
  host,
  port: 10261,
  portFlag: '--proxy-port',
  ifPresent: i > 0,
}))

void t.test('the hub opens the addresses of a listener that were not passed', async (t) => {
  const at = (address: string, port = 10261) => ({ address, port })
  t.strictSame(placesWith(10261, []), [ipv4, ipv6])
  t.strictSame(placesWith(10261, [{ fd: 3, at: at('127.0.0.1') }]), [{ fd: 3 }, ipv6])
  t.strictSame(placesWith(10261, [{ fd: 3, at: at('0:0:0:0:0:0:0:1') }]), [{ fd: 3 }, ipv4])
  const both = [
    { fd: 3, at: at('127.0.0.1') },
    { fd: 4, at: at('::1') },
  ]
  t.strictSame(placesWith(10261, both), [{ fd: 3 }, { fd: 4 }])
})

void t.test('beside one at the dummy interface it opens all others', async (t) => {
  const at = { address: '169.254.2.1', port: 10261 }
  t.strictSame(placesWith(10261, [{ fd: 3, at }]), [{ fd: 3 }, ipv4, ipv6])
})

void t.test('beside sockets that were bound elsewhere it opens none', async (t) => {
  const elsewhere = [{ fd: 3, at: { address: '127.0.0.1', port: 1 } }]
  t.strictSame(placesWith(10261, elsewhere), [{ fd: 3 }])
  t.strictSame(placesWith(0, elsewhere), [{ fd: 3 }])
})

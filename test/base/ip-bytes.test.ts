import t from 'tap'
import { ipv4Bytes, ipv6Bytes } from '../../src/base/ip-bytes.ts'

void t.test('an IPv4 address has four bytes', async (t) => {
  t.equal(ipv4Bytes('169.254.2.1').toString('hex'), 'a9fe0201')
})

const addresses = [
  ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
  ['2001:DB8::1', '20010db8000000000000000000000001'],
  ['2001:db8:1::', '20010db8000100000000000000000000'],
  ['::1', '00000000000000000000000000000001'],
  ['::', '00000000000000000000000000000000'],
  ['fe80::1%eth0', 'fe800000000000000000000000000001'],
  ['::ffff:192.0.2.1', '00000000000000000000ffffc0000201'],
  ['64:ff9b::10.0.0.255', '0064ff9b00000000000000000a0000ff'],
] as const

for (const [address, bytes] of addresses) {
  void t.test(`${address} has the bytes of all its groups`, async (t) => {
    t.equal(ipv6Bytes(address).toString('hex'), bytes)
  })
}

void t.test('too many groups do not throw', async (t) => {
  t.doesNotThrow(() => ipv6Bytes('1:2:3:4:5::5:6:7:8'))
})

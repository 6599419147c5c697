import t from 'tap'
import {
  withGzipOnly,
  withReadableEncodings,
  acceptsGzip,
} from '../../../src/http/exchange/accept-encoding.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'

const asking = (...values: string[]): HeaderList =>
  new HeaderList(['Host', 'hub', ...values.flatMap((value) => ['accept-encoding', value])])

const cases: readonly (readonly [string, string | undefined, boolean])[] = [
  ['gzip', 'gzip', true],
  ['GZIP', 'GZIP', true],
  ['gzip, deflate, br', 'gzip', true],
  ['br;q=1.0, gzip;q=0.8, *;q=0.1', 'gzip;q=0.8', true],
  ['gzip;q=0', 'gzip;q=0', false],
  ['gzip; q=0.00, identity', 'gzip; q=0.00, identity', false],
  ['gzip;q=0.001', 'gzip;q=0.001', true],
  ['identity', 'identity', false],
  ['br', undefined, false],
  ['*', undefined, false],
  ['gzipped', undefined, false],
  ['', undefined, false],
]

for (const [written, readable, takes] of cases) {
  void t.test(`of "${written}" is read: ${readable ?? 'nothing'}`, async (t) => {
    const headers = asking(written)
    t.equal(withReadableEncodings(headers).get('accept-encoding'), readable)
    t.equal(withReadableEncodings(headers).get('host'), 'hub')
    t.equal(acceptsGzip(headers), takes)
  })
}

void t.test('a request without Accept-Encoding stays without', async (t) => {
  const headers = asking()
  t.equal(withReadableEncodings(headers), headers)
  t.equal(acceptsGzip(headers), false)
})

void t.test('codings may be spread over fields', async (t) => {
  const headers = asking('br', 'gzip')
  t.equal(acceptsGzip(headers), true)
  t.strictSame(withReadableEncodings(headers).all('accept-encoding'), ['gzip'])
})

void t.test('gzip replaces any requested coding', async (t) => {
  t.strictSame(withGzipOnly(asking('br', 'identity')).all('accept-encoding'), ['gzip'])
})

import t from 'tap'
import {
  askingGzip,
  askingReadable,
  takesGzip,
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
    t.equal(askingReadable(headers).get('accept-encoding'), readable)
    t.equal(askingReadable(headers).get('host'), 'hub')
    t.equal(takesGzip(headers), takes)
  })
}

void t.test('who asks for nothing goes on asking for nothing', async (t) => {
  const headers = asking()
  t.equal(askingReadable(headers), headers)
  t.equal(takesGzip(headers), false)
})

void t.test('codings may be spread over fields', async (t) => {
  const headers = asking('br', 'gzip')
  t.equal(takesGzip(headers), true)
  t.strictSame(askingReadable(headers).all('accept-encoding'), ['gzip'])
})

void t.test('gzip takes the place of whatever was asked for', async (t) => {
  t.strictSame(askingGzip(asking('br', 'identity')).all('accept-encoding'), ['gzip'])
})

/**
 * Whatever text a caller repeats, reading it takes work in proportion to its length: four times the
 * text is not sixteen times the work.
 */
import t from 'tap'
import { endToEnd, HeaderList } from '../../src/http/exchange/headers.ts'
import { presentedCredential } from '../../src/hub/identity/claims.ts'
import { parseWebToken } from '../../src/hub/identity/web-token.ts'
import { encodingOf } from '../../src/api/kube/media-type.ts'
import { canonicalFieldSelector, canonicalLabelSelector } from '../../src/api/kube/selectors.ts'
import { componentOf } from '../../src/api/request/component.ts'
import { representationsOf } from '../../src/api/request/representation.ts'
import { rebindingFault } from '../../src/api/request/host-check.ts'
import { namedBySelector, parseRequestInfo } from '../../src/api/request/request-info.ts'
import { exchangeOf } from '../kit/exchange.ts'
import { isSuperLinear } from '../kit/super-linear.ts'

const field = (name: string, value: string) => ({
  ...exchangeOf('/api'),
  upgrade: true,
  headers: new HeaderList([name, value]),
})

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  Authorization: (text) => presentedCredential(field('Authorization', text)),
  'Sec-WebSocket-Protocol': (text) => presentedCredential(field('Sec-WebSocket-Protocol', text)),
  Connection: (text) => endToEnd(new HeaderList(['Connection', text])),
  Accept: (text) => representationsOf(text, new URLSearchParams()),
  'Content-Type': encodingOf,
  'User-Agent': componentOf,
  Host: (host) => rebindingFault(new Set(), { localAddress: '127.0.0.1', host, origin: undefined }),
  'a token': parseWebToken,
  'a path': (text) => parseRequestInfo('GET', `/api/v1/${text}`),
  'a query': (text) => {
    const info = parseRequestInfo('GET', `/api/v1/pods?fieldSelector=${text}`)
    return info.isResource && namedBySelector(info)
  },
  'a label selector': canonicalLabelSelector,
  'a field selector': canonicalFieldSelector,
}

/** What is repeated: blanks, separators, and what looks like the beginning of something. */
const separators = [' ', '\t', ',', ', ', ';', ';q=0', '=', 'a=b,', 'a!=', 'a,', '(', 'a in (b),']
const others = [
  '!',
  '\\',
  '%41',
  '/',
  '//',
  '.',
  ':',
  ':1',
  '[',
  'a',
  'a.b',
  '1.',
  'metadata.name=',
]
const units = [...separators, ...others]

const outcome = (read: (text: string) => unknown) => (text: string) => {
  try {
    return read(text)
  } catch (refusal) {
    return refusal
  }
}

for (const [what, read] of Object.entries(readers)) {
  void t.test(`parsing time is linear in the input: ${what}`, async (t) => {
    const act = outcome(read)
    for (const unit of units) {
      const of = (length: number): string => `x${unit.repeat(length / unit.length)}y`
      t.notOk(await isSuperLinear(act, of(8_000), of(32_000)), JSON.stringify(unit))
    }
  })
}

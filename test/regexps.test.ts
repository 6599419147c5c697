import t from 'tap'
import { superLinear } from './regexps.ts'

void t.test('an expression with quadratic time is found', async (t) => {
  for (const slow of ['[\\t ]+$', '%.*$', '\\s*#.*$', 'a+b', '^(a+)+$', '^a*a*$'])
    t.ok(superLinear(slow, '').length > 0, slow)
})

void t.test('a linear expression is not', async (t) => {
  for (const fast of ['^[A-Za-z0-9\\-._~+/]+=*$', ',', '^impersonate-', '[\\\\,=]'])
    t.strictSame(superLinear(fast, 'i'), [], fast)
})

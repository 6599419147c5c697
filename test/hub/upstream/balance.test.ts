import t from 'tap'
import { balancer } from '../../../src/hub/upstream/balance.ts'
import { tokenHolder } from '../../../src/api/request/identity.ts'
import { candidate, checkBalancer, crowd, firstOf } from '../../contracts/balancer.ts'
import { asker } from './askers.ts'

for (const mode of ['round-robin', 'priority', 'consistent-hashing'] as const) {
  void t.test(`the contract of every mode: ${mode}`, (t) => checkBalancer(t, mode))
}

const [a, b, c] = [candidate('a'), candidate('b'), candidate('c')]

void t.test('round robin gives each upstream as many components', async (t) => {
  const balance = balancer('round-robin')
  const firsts = crowd.map((who) => firstOf(balance, who, [a, b, c]))
  for (const name of ['a', 'b', 'c']) t.equal(firsts.filter((first) => first === name).length, 100)
})

void t.test('round robin keeps a component where it is, whatever it asks for', async (t) => {
  const balance = balancer('round-robin')
  const home = firstOf(balance, asker('kubelet/v1', '/api/v1/pods'), [a, b])
  t.equal(firstOf(balance, asker('kubelet/v1', '/api/v1/services'), [a, b]), home)
  const other = firstOf(balance, asker('kubelet/v1', '/api/v1/pods', tokenHolder('x')), [a, b])
  t.not(other, home, 'another identity is another component')
})

void t.test('round robin gives a new upstream new components, and moves no old one', async (t) => {
  const balance = balancer('round-robin')
  const early = crowd.slice(0, 100)
  const before = early.map((who) => firstOf(balance, who, [a, b]))
  t.strictSame(
    early.map((who) => firstOf(balance, who, [a, b, c])),
    before,
  )
  const late = crowd.slice(100, 150).map((who) => firstOf(balance, who, [a, b, c]))
  t.strictSame(new Set(late), new Set(['c']))
})

void t.test('round robin moves components whose upstream is lost for good', async (t) => {
  const balance = balancer('round-robin')
  for (const who of crowd) firstOf(balance, who, [a, b, c])
  for (const who of crowd) firstOf(balance, who, [b, c])
  const firsts = crowd.map((who) => firstOf(balance, who, [b, c]))
  for (const name of ['b', 'c']) t.equal(firsts.filter((first) => first === name).length, 150)
})

void t.test('round robin remembers a limited number of components', async (t) => {
  const balance = balancer('round-robin')
  for (let i = 0; i < 5_000; i++) firstOf(balance, asker(`one-of-many-${i}`), [a, b])
  const firsts = crowd.map((who) => firstOf(balance, who, [a, b]))
  const ofA = firsts.filter((first) => first === 'a').length
  t.ok(ofA > 120 && ofA < 180, `${ofA} of 300: forgotten ones count no more`)
})

void t.test('by priority the first ready upstream is first for every component', async (t) => {
  const balance = balancer('priority')
  for (const who of crowd) t.strictSame(balance(who, [a, b, c]), [a, b, c])
})

void t.test('consistent hashing goes by client and path, and not by the query', async (t) => {
  const balance = balancer('consistent-hashing')
  const all = [a, b, c]
  const firsts = new Set(crowd.map((who) => firstOf(balance, who, all)))
  t.equal(firsts.size, 3)
  const list = asker('kubelet/v1', '/api/v1/pods?resourceVersion=0')
  const watch = asker('kubelet/v1', '/api/v1/pods?watch=true', tokenHolder('x'))
  t.strictSame(balance(list, all), balance(watch, all))
  const again = balancer('consistent-hashing')
  t.strictSame(
    crowd.map((who) => firstOf(again, who, [c, a, b])),
    crowd.map((who) => firstOf(balance, who, all)),
    'every hub has the same answer, in whatever order its flags are',
  )
})

import type { Test } from 'tap'
import {
  balancer,
  type LoadBalancerContext,
  type BalanceMode,
  type Balancer,
  type LoadBalancedHost,
} from '../../src/hub/upstream/balance.ts'
import { asker } from '../hub/upstream/askers.ts'

export const candidate = (
  origin: string,
  state: Partial<LoadBalancedHost> = {},
): LoadBalancedHost => ({
  origin,
  availability: 'ready',
  slowStartWeight: 1,
  ...state,
})

/** Many, as different from each other as components and paths are. */
export const crowd: readonly LoadBalancerContext[] = Array.from({ length: 300 }, (_, i) =>
  asker(`component-${i}/v1`, `/api/v1/namespaces/n${i % 7}/configmaps`),
)

export const firstOf = (
  balance: Balancer,
  who: LoadBalancerContext,
  all: readonly LoadBalancedHost[],
): string => balance(who, all)[0]?.origin ?? ''

const [a, b, c] = [candidate('a'), candidate('b'), candidate('c')]

/** What holds in every mode. */
export async function checkBalancer(t: Test, mode: BalanceMode): Promise<void> {
  await t.test('each upstream is named once, in a stable order per caller', async (t) => {
    const balance = balancer(mode)
    const all = [a, candidate('x', { availability: 'unhealthy' }), b, c]
    for (const who of crowd) {
      const order = balance(who, all)
      t.strictSame(order.map(({ origin }) => origin).sort(), ['a', 'b', 'c'])
      t.strictSame(balance(who, all), order)
    }
    t.strictSame(balance(asker(), []), [])
  })

  await t.test('order: ready, then ejected, then unready, then silent upstreams', async (t) => {
    const all = [
      candidate('d', { availability: 'unresponsive' }),
      candidate('a', { availability: 'unready' }),
      candidate('b', { availability: 'ejected' }),
      c,
    ]
    const balance = balancer(mode)
    for (const who of crowd.slice(0, 20)) {
      t.strictSame(
        balance(who, all).map(({ origin }) => origin),
        ['c', 'b', 'a', 'd'],
      )
    }
  })

  await t.test('callers of other upstreams stay when one fails or comes back', async (t) => {
    const balance = balancer(mode)
    const before = crowd.map((who) => firstOf(balance, who, [a, b, c]))
    const during = crowd.map((who) =>
      firstOf(balance, who, [candidate('a', { availability: 'unhealthy' }), b, c]),
    )
    t.ok(before.every((first, i) => first === 'a' || first === during[i]))
    t.notOk(during.includes('a'))
    t.strictSame(
      crowd.map((who) => firstOf(balance, who, [a, b, c])),
      before,
    )
  })

  await t.test('in slow start callers return to an upstream bit by bit and stay', async (t) => {
    const balance = balancer(mode)
    const whole = crowd.filter((who) => firstOf(balance, who, [a, b, c]) === 'a')
    let returned = new Set<LoadBalancerContext>()
    for (const slowStartWeight of [0, 0.25, 0.5, 0.75, 1]) {
      const now = new Set(
        whole.filter(
          (who) => firstOf(balance, who, [candidate('a', { slowStartWeight }), b, c]) === 'a',
        ),
      )
      t.ok(returned.isSubsetOf(now))
      t.ok(
        Math.abs(now.size / whole.length - slowStartWeight) < 0.2,
        `${now.size} of ${whole.length}`,
      )
      returned = now
    }
  })

  await t.test('upstreams all in slow start still get requests', async (t) => {
    const cold = [candidate('a', { slowStartWeight: 0 }), candidate('b', { slowStartWeight: 0 })]
    t.equal(balancer(mode)(asker(), cold).length, 2)
  })
}

import t from 'tap'
import type { Handler } from '../../../src/http/exchange/exchange.ts'
import { stack } from '../../../src/http/exchange/stack.ts'

void t.test(
  'a request travels through the layers from the first to the last, and its reply back',
  async (t) => {
    const way: string[] = []
    const layer =
      (name: string) =>
      (next: Handler<string, string>): Handler<string, string> =>
      async (request) => {
        way.push(`${name} in`)
        const reply = await next(`${request}${name}`)
        way.push(`${name} out`)
        return `${reply}${name}`
      }
    const handler = stack<string, string>()
      .through(layer('a'))
      .through(layer('b'))
      .to(async (request) => `(${request})`)
    t.equal(await handler('x'), '(xab)ba')
    t.strictSame(way, ['a in', 'b in', 'b out', 'a out'])
  },
)

void t.test('layers are put together once, not for each request', async (t) => {
  let built = 0
  const handler = stack<string, string>()
    .through((next: Handler<string, string>): Handler<string, string> => {
      built++
      return next
    })
    .to(async (request) => request)
  await handler('x')
  await handler('y')
  t.equal(built, 1)
})

void t.test('a layer may change the types of request and reply', async (t) => {
  const handler = stack<string, string>()
    .through(
      (next: Handler<number, number>): Handler<string, string> =>
        async (text) =>
          String(await next(Number(text))),
    )
    .to(async (number) => number * 2)
  t.equal(await handler('21'), '42')
})

void t.test('without layers there is the handler', async (t) => {
  t.equal(await stack<string, string>().to(async (request) => request)('x'), 'x')
})

void t.test('an exception in a layer or handler becomes a rejected promise', async (t) => {
  const seen: string[] = []
  const noting =
    (name: string) =>
    (next: Handler<string, string>): Handler<string, string> =>
    (request) =>
      next(request).catch((cause: unknown) => {
        seen.push(name)
        throw cause
      })
  const throwing = (): Handler<string, string> => () => {
    throw new TypeError('x is not a function')
  }
  const layered = stack<string, string>().through(noting('over a layer')).through(throwing)
  await t.rejects(layered.to(async (request) => request)('x'), TypeError)
  const bare = stack<string, string>().through(noting('over the handler'))
  await t.rejects(
    bare.to(() => {
      throw new TypeError('x is not a function')
    })('x'),
    TypeError,
  )
  t.strictSame(seen, ['over a layer', 'over the handler'])
})

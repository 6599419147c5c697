import t from 'tap'
import { Throttled } from '../../src/base/throttled.ts'
import { until } from '../kit/until.ts'

/** Computations that end when a test says so; `begun` counts them. */
function computations() {
  const waiting: PromiseWithResolvers<number>[] = []
  return {
    get begun() {
      return waiting.length
    },
    compute: (): Promise<number> => {
      const next = Promise.withResolvers<number>()
      waiting.push(next)
      return next.promise
    },
    end: (): void => waiting.at(-1)?.resolve(waiting.length),
    fail: (): void => waiting.at(-1)?.reject(new Error(`failed ${waiting.length}`)),
  }
}

const never = 1e9

void t.test('nothing is computed before the first get()', async (t) => {
  const source = computations()
  new Throttled(source.compute, never)
  t.equal(source.begun, 0)
})

void t.test('callers share a computation and its result', async (t) => {
  const source = computations()
  const paced = new Throttled(source.compute, never)
  const during = [paced.get(), paced.get()]
  source.end()
  t.strictSame(await Promise.all(during), [1, 1])
  t.equal(await paced.get(), 1)
  t.equal(source.begun, 1)
})

void t.test('an old enough result is computed again', async (t) => {
  const source = computations()
  const paced = new Throttled(source.compute, 0)
  const first = paced.get()
  source.end()
  t.equal(await first, 1)
  // However quick the computation was, it takes no more than a part of the time.
  await until('the next read', () => {
    void paced.get()
    return source.begun > 1
  })
  source.end()
  t.equal(await paced.get(), 2)
})

void t.test('callers share a failure, too', async (t) => {
  const source = computations()
  const paced = new Throttled(source.compute, never)
  const first = paced.get()
  source.fail()
  await t.rejects(first, { message: 'failed 1' })
  await t.rejects(paced.get(), { message: 'failed 1' })
  t.equal(source.begun, 1)
})

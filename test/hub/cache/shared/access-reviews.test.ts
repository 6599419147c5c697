import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { AccessReviews } from '../../../../src/hub/cache/shared/access-reviews.ts'
import { nodeIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import { services } from '../../../kit/cloud.ts'
import { Condition } from '../../../kit/condition.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

const minute = 60_000

function accessIn(folder: string) {
  const heard: (boolean | undefined)[] = []
  const verdict = new Condition()
  const access = new AccessReviews(join(folder, 'access.json'), {
    onReviewed: (said) => {
      heard.push(said)
      verdict.changed()
    },
    onFailure: () => undefined,
  })
  const ask = (said: boolean | undefined) =>
    access.of(nodeIdentity, services, () => Promise.resolve(said))
  return { access, ask, heard, reviewed: () => verdict.until(() => heard.length > 0) }
}

void t.test('a review is repeated after five minutes of yes, 30 seconds of no', async (t) => {
  let now = Date.now()
  t.capture(Date, 'now', () => now)
  const { access, ask, heard } = accessIn(rootFolder(t))
  t.equal(await ask(true), true)
  now += 5 * minute - 1
  t.equal(await ask(false), true)
  now += 1
  t.equal(await ask(false), false)
  now += 29_999
  t.equal(await ask(true), false)
  now += 1
  t.equal(await ask(true), true)
  now -= 600 * minute
  t.equal(await ask(false), false, 'and when the clock was set back')
  now += 1_200 * minute
  t.equal(
    access.last(nodeIdentity, services),
    false,
    'the last one counts where no API server can be reached',
  )
  t.strictSame(heard, [true, false, true, false])
})

void t.test('concurrent requests share one review, not repeated at once if it fails', async (t) => {
  const { access, ask, heard } = accessIn(rootFolder(t))
  const answer = Promise.withResolvers<boolean | undefined>()
  const both = [1, 2].map(() => access.of(nodeIdentity, services, () => answer.promise))
  answer.resolve(undefined)
  t.strictSame(await Promise.all(both), [undefined, undefined])
  t.equal(await ask(true), undefined)
  t.strictSame(heard, [undefined])
  t.equal(access.last(nodeIdentity, services), undefined)
})

void t.test('a yes does not count if a denial came during its review', async (t) => {
  const { access, ask } = accessIn(rootFolder(t))
  const answer = Promise.withResolvers<boolean>()
  const review = access.of(nodeIdentity, services, () => answer.promise)
  await access.refused(nodeIdentity, services)
  answer.resolve(true)
  t.equal(await review, undefined)
  t.equal(access.last(nodeIdentity, services), undefined)
  await ask(true)
  t.equal(access.last(nodeIdentity, services), undefined, 'it is made again after five seconds')
})

void t.test('a yes that is being written is withdrawn by a denial', async (t) => {
  const folder = rootFolder(t)
  const { access, ask, reviewed } = accessIn(folder)
  const written = ask(true)
  await reviewed()
  await access.refused(nodeIdentity, services)
  t.equal(await written, false)
  t.equal(access.last(nodeIdentity, services), false)
  t.equal(accessIn(folder).access.last(nodeIdentity, services), false)
})

void t.test('a verdict does not count before it is on the disk', async (t) => {
  const folder = rootFolder(t)
  const { access, ask, reviewed } = accessIn(folder)
  const asked = ask(true)
  await reviewed()
  t.equal(access.last(nodeIdentity, services), undefined)
  t.notOk(existsSync(join(folder, 'access.json')))
  t.equal(await asked, true)
  t.equal(accessIn(folder).access.last(nodeIdentity, services), true, 'who begins now knows it')
})

void t.test('verdicts given together are on the disk before either counts', async (t) => {
  const folder = rootFolder(t)
  const { access } = accessIn(folder)
  const callers = Array.from({ length: 20 }, (_, i) => tokenHolder(`caller-${i}`))
  await Promise.all(
    callers.map(async (who) => {
      await access.of(who, services, () => Promise.resolve(true))
      t.equal(accessIn(folder).access.last(who, services), true)
    }),
  )
  await access[Symbol.asyncDispose]()
  for (const who of callers) t.equal(accessIn(folder).access.last(who, services), true)
})

void t.test('a verdict that cannot be written counts all the same', async (t) => {
  const failures: unknown[] = []
  const access = new AccessReviews(join(t.testdir({ beside: 'a file' }), 'beside', 'access.json'), {
    onReviewed: () => undefined,
    onFailure: (cause) => failures.push(cause),
  })
  t.equal(await access.of(nodeIdentity, services, () => Promise.resolve(true)), true)
  t.equal(access.last(nodeIdentity, services), true)
  t.equal(failures.length, 1)
})

void t.test('verdicts outlive the process, each for its caller and resource', async (t) => {
  const folder = rootFolder(t)
  const one = tokenHolder('one')
  const first = accessIn(folder).access
  await first.of(nodeIdentity, services, () => Promise.resolve(true))
  await first.of(one, services, () => Promise.resolve(false))
  // Nothing is left to be written: the first may have crashed.
  const second = accessIn(folder).access
  t.equal(second.last(nodeIdentity, services), true)
  t.equal(second.last(one, services), false)
  t.equal(second.last(tokenHolder('two'), services), undefined)
  t.equal(second.last(nodeIdentity, { ...services, resource: 'secrets' }), undefined)
})

void t.test('a file that cannot be read is as good as none', async (t) => {
  const folder = rootFolder(t)
  for (const text of ['[', '{}', '[["x"]]', '[["x",{"allowed":1,"at":0}]]']) {
    writeFileSync(join(folder, 'access.json'), text)
    const { access } = accessIn(folder)
    t.equal(access.last(nodeIdentity, services), undefined)
  }
})

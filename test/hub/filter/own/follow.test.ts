import t from 'tap'
import type { FilterDefinition } from '../../../../src/hub/filter/filter.ts'
import { followFilters } from '../../../../src/hub/filter/own/follow.ts'
import { loadFilters } from '../../../../src/hub/filter/own/load.ts'
import { Condition } from '../../../kit/condition.ts'
import { FilterFolder, moduleOf } from '../../../kit/own-filter.ts'

/** A follower that checks when the test calls it, and its reports. */
function followed(files: readonly string[], first: readonly FilterDefinition[]) {
  const told: string[] = []
  const condition = new Condition()
  const tell = (what: string): void => {
    told.push(what)
    condition.changed()
  }
  const follower = followFilters(files, first, {
    intervalMs: 3_600_000,
    load: (meant) => loadFilters(meant, []),
    onLoaded: (filters) => tell(`loaded ${filters.map(({ name }) => name).join()}`),
    onSame: () => tell('same'),
    onUnusable: (mistakes) => tell(`unusable ${mistakes.length}`),
  })
  t.teardown(() => follower[Symbol.dispose]())
  const next = async (to = files): Promise<string | undefined> => {
    const from = told.length
    follower.move(to)
    await condition.until(() => told.length > from)
    return told.at(-1)
  }
  return { follower, told, next }
}

async function loaded(...files: string[]): Promise<readonly FilterDefinition[]> {
  const result = await loadFilters(files, [])
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  return result.filters
}

void t.test('a changed file is loaded again, a bad one refused once', async (t) => {
  const folder = new FilterFolder(t)
  const file = folder.write('f.mjs', moduleOf('a', `'leave'`))
  const { told, follower, next } = followed([file], await loaded(file))
  t.equal(await next(), 'same', 'what it was started with may have changed since')
  folder.write('f.mjs', moduleOf('a', `'withhold'`))
  t.equal(await next(), 'loaded a')
  folder.write('f.mjs', 'export const a = {}')
  t.match(await next(), /^unusable/)
  follower.move([file])
  follower.move([file])
  folder.write('f.mjs', moduleOf('a', `'withhold'`))
  t.equal(await next(), 'same', 'what is in force is there again')
  t.equal(told.filter((each) => each.startsWith('unusable')).length, 1)
  folder.write('f.mjs', moduleOf('a', `'leave'`))
  t.equal(await next(), 'loaded a', 'a content that was loaded before')
})

void t.test('the list of files can change', async (t) => {
  const folder = new FilterFolder(t)
  const one = folder.write('one.mjs', moduleOf('a', `'leave'`))
  const two = folder.write('two.mjs', moduleOf('b', `'leave'`))
  const { next } = followed([one], await loaded(one))
  t.equal(await next(), 'same')
  t.equal(await next([two, one]), 'loaded b,a')
  t.equal(await next([]), 'loaded ')
})

void t.test('files that are named while others load are loaded after them', async (t) => {
  const folder = new FilterFolder(t)
  const one = folder.write('one.mjs', `await undefined\n${moduleOf('a', `'leave'`)}`)
  const two = folder.write('two.mjs', moduleOf('b', `'leave'`))
  const { follower, next } = followed([], [])
  follower.move([one])
  t.equal(await next([two]), 'loaded b')
})

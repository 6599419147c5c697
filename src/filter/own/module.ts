import { pathToFileURL } from 'node:url'
import { after } from '../../base/clock.ts'
import type { FilterDefinition } from '../filter.ts'
import { checkedDefinition, isFields } from './definition.ts'
import { reasonOf, type Mistakes } from './mistakes.ts'
import { whyUnusable } from './probe.ts'

/** What a module may take until it has loaded; only one that waits for something takes longer. */
const patienceMs = 10_000

/**
 * The filters that a module exports, by themselves or in lists, in the order of the exports' names; functions and plain values beside
 * them are its own affair. `hash` is that of its content: each content is loaded once, and stays in memory as long as the process.
 */
export async function filtersOfModule(
  file: string,
  hash: string,
  mistakes: Mistakes,
): Promise<readonly FilterDefinition[]> {
  const exported = await loaded(file, hash, mistakes)
  if (exported === undefined) return []
  const found = Object.entries(exported).flatMap(([name, value]): [string, unknown][] =>
    Array.isArray(value)
      ? value.map((each: unknown, at) => [`${name}[${at}]`, each])
      : isFields(value)
        ? [[name, value]]
        : [],
  )
  if (found.length === 0) mistakes.say('', 'exports no filter definition')
  return found.flatMap(([where, value]) => {
    try {
      return definitionOf(value, where, hash, mistakes) ?? []
    } catch (cause) {
      mistakes.say(where, `cannot be looked at: ${reasonOf(cause)}`)
      return []
    }
  })
}

/** Taken out of what was exported, which may be an object of a class, and may change later. */
function definitionOf(
  value: unknown,
  where: string,
  hash: string,
  mistakes: Mistakes,
): FilterDefinition | undefined {
  const definition = checkedDefinition(value, where, mistakes)
  if (!definition) return undefined
  const unusable = whyUnusable(definition)
  if (unusable !== undefined) {
    mistakes.say(where, unusable)
    return undefined
  }
  const { name, rules, onError, needs, awaits } = definition
  return {
    name,
    revision: hash,
    rules,
    onError,
    needs,
    ...(awaits && { awaits }),
    create: (inputs, warn) => definition.create(inputs, warn),
  }
}

async function loaded(
  file: string,
  hash: string,
  mistakes: Mistakes,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  using _ = after(patienceMs, () => resolve('late'))
  try {
    const loading: Promise<Record<string, unknown>> = import(`${pathToFileURL(file).href}?${hash}`)
    loading.catch(() => undefined)
    const exported = await Promise.race([loading, late])
    if (exported !== 'late') return exported
    mistakes.say('', `has not loaded after ${patienceMs / 1000} s: it waits for something`)
  } catch (cause) {
    mistakes.say('', `cannot be loaded: ${reasonOf(cause)}`)
  }
  return undefined
}

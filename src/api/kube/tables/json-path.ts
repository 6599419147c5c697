import { isList, isObject, type Json } from '../json.ts'
import { printed, valueAt } from '../json-at.ts'

/** A step of a path: to a member, an element, every member or element, or those that match. */
type Step =
  | { readonly kind: 'member'; readonly name: string }
  | { readonly kind: 'element'; readonly at: number }
  | { readonly kind: 'every' }
  | { readonly kind: 'filter'; readonly path: readonly string[]; readonly value: string }

/** A backslash takes its meaning from the next character. */
const member = (name: string): Step => ({
  kind: 'member',
  name: name.replaceAll(/\\(.)/g, '$1'),
})

type StepOf = (captured: readonly string[]) => Step

/** The forms of a step, each at the beginning of what is left of a path. */
const forms: readonly (readonly [RegExp, StepOf])[] = [
  [/^\.?\[['"]([^'"]*)['"]\]/, ([name = '']) => member(name)],
  [/^\.?\[(-?\d+)\]/, ([at]) => ({ kind: 'element', at: Number(at) })],
  [/^\.?(?:\[\*\]|\*)/, () => ({ kind: 'every' })],
  [
    /^\.?\[\?\(@\.([\w.-]+) ?== ?['"]([^'"]*)['"]\)\]/,
    ([path = '', value = '']) => ({ kind: 'filter', path: path.split('.'), value }),
  ],
  [/^\.((?:[^.[\\]|\\.)+)/, ([name = '']) => member(name)],
]

/** Longer than any path that a person writes. */
const longestPath = 1024

/**
 * Reads a path of a printer column (client-go util/jsonpath), such as
 * `.status.conditions[?(@.type=="Ready")].status`. `undefined` for one with anything else in it.
 */
export function parseJsonPath(path: string): ((value: Json) => Json | undefined) | undefined {
  if (path.length > longestPath) return undefined
  const steps: Step[] = []
  for (let rest = path; rest !== '';) {
    const found = firstForm(rest)
    if (!found) return undefined
    steps.push(found.step)
    rest = rest.slice(found.length)
  }
  return (value) => steps.reduce<readonly Json[]>(taken, [value])[0]
}

function firstForm(rest: string): { readonly step: Step; readonly length: number } | undefined {
  for (const [form, stepOf] of forms) {
    const found = form.exec(rest)
    if (found) return { step: stepOf(found.slice(1)), length: found[0].length }
  }
  return undefined
}

function taken(values: readonly Json[], next: Step): readonly Json[] {
  return values.flatMap((value) => {
    switch (next.kind) {
      case 'member': {
        const found = valueAt(value, next.name)
        return found === undefined ? [] : [found]
      }
      case 'element':
        return isList(value) ? value.slice(next.at).slice(0, 1) : []
      case 'every':
        return isList(value) ? value : isObject(value) ? Object.values(value) : []
      case 'filter':
        return isList(value)
          ? value.filter((each) => printed(valueAt(each, ...next.path)) === next.value)
          : []
    }
  })
}

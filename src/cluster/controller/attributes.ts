import type { PoolTaint } from '../../api/kube/node-pool.ts'

type Texts = Readonly<Record<string, string>>

/** The changes that bring a pool's labels or annotations to a node. */
export interface MergedTexts {
  /** Changes by key: a value to set, null to remove. */
  readonly changes: Readonly<Record<string, string | null>>
  /** The values that are the pool's, to be recorded. */
  readonly ours: Texts
}

/**
 * Sets the values that a pool has, and removes those that it no longer has. Only values that are
 * recorded as the pool's, and unchanged since, are changed or removed: another client has set any
 * other value, and it stays, even where it is the pool's own.
 */
export function mergeTexts(current: Texts, remembered: Texts, wanted: Texts): MergedTexts {
  const changes: Record<string, string | null> = {}
  const ours: Record<string, string> = {}
  for (const key of new Set([...Object.keys(remembered), ...Object.keys(wanted)])) {
    const [is, was, wish] = [own(current, key), own(remembered, key), own(wanted, key)]
    const isOurs = is !== undefined && was !== undefined && is === was
    if (wish === undefined) {
      if (isOurs) changes[key] = null
    } else if (is === undefined || (isOurs && is !== wish)) {
      changes[key] = wish
      ours[key] = wish
    } else if (isOurs) ours[key] = wish
  }
  return { changes, ours }
}

/** A name such as `constructor` is a label like any other. */
const own = (texts: Texts, key: string): string | undefined =>
  Object.hasOwn(texts, key) ? texts[key] : undefined

/** The changes that bring a pool's taints to a node; `taints` only where they change. */
export interface MergedTaints {
  readonly taints?: readonly PoolTaint[]
  readonly ours: readonly PoolTaint[]
}

/**
 * The same for taints, which are identified by key and effect. Existing taints keep their order.
 */
export function mergeTaints(
  current: readonly PoolTaint[],
  remembered: readonly PoolTaint[],
  wanted: readonly PoolTaint[],
): MergedTaints {
  const of = (taints: readonly PoolTaint[]): Record<string, string> =>
    Object.fromEntries(taints.map((taint) => [identityOf(taint), taint.value ?? '']))
  const { changes, ours } = mergeTexts(of(current), of(remembered), of(wanted))
  const isOurs = (taint: PoolTaint): boolean => Object.hasOwn(ours, identityOf(taint))
  const stay = current.flatMap((taint) => {
    const change = own(changes as Texts, identityOf(taint)) as string | null | undefined
    if (change === null) return []
    return [change === undefined ? taint : { ...taint, value: change }]
  })
  const there = new Set(current.map(identityOf))
  const added = unique(wanted).filter((taint) => isOurs(taint) && !there.has(identityOf(taint)))
  return {
    ...(Object.keys(changes).length > 0 && { taints: [...stay, ...added.map(asSet)] }),
    ours: unique(wanted).filter(isOurs),
  }
}

export const identityOf = ({ key, effect }: PoolTaint): string => `${key}:${effect}`

/** The last of those that are the same but for their value, as in a record. */
const unique = (taints: readonly PoolTaint[]): readonly PoolTaint[] => [
  ...new Map(taints.map((taint) => [identityOf(taint), taint])).values(),
]

const asSet = ({ key, value, effect }: PoolTaint): PoolTaint => ({
  key,
  ...(value && { value }),
  effect,
})

import { everyone } from '../../../api/request/identity.ts'
import { namedBySelector } from '../../../api/request/request-info.ts'
import type { DocumentKey, Withdrawal } from '../store.ts'
import { nameKey, textInScope, type CollectionAddress } from './address.ts'
import type { EvictRecord } from './record.ts'
import type { Scope } from './scope.ts'
import type { State } from './state.ts'

/**
 * What is stored of it for the holders, and what of the copies for all callers they were given.
 */
export function withdrawnOf(
  state: State,
  holders: string,
  what: Withdrawal | DocumentKey,
): EvictRecord {
  if ('path' in what) {
    const documents = [...state.documents.values()]
      .map(({ document }) => document)
      .filter(([identity, path]) => identity.startsWith(holders) && path === what.path)
    return { kind: 'evict', collections: [], objects: [], documents }
  }
  const { group, resource } = what.gvr
  const isOwn = (owner: string): boolean => owner.startsWith(holders)
  const scopes = [...state.scopes.values()].filter(
    ({ key }) => (isOwn(key[0]) || key[0] === everyone) && key[2] === group && key[4] === resource,
  )
  const [own, shared] = [
    scopes.filter(({ key }) => isOwn(key[0])),
    scopes.filter(({ key }) => !isOwn(key[0])),
  ]
  const collections = what.of === 'collections' ? own.flatMap((scope) => partsOf(what, scope)) : []
  const objects = what.of === 'objects' ? own.flatMap((scope) => namedBy(what, scope)) : []
  const withdrawn = shared.flatMap((scope) =>
    (what.of === 'collections'
      ? partsOf(what, scope).map(textInScope)
      : namedBy(what, scope).map(([, namespace, name]) => nameKey({ namespace, name }))
    )
      .filter((to) => scope.holders(to)?.values().some(isOwn))
      .map((to) => [scope.key, to, holders] as const),
  )
  return { kind: 'evict', collections, objects, documents: [], withdrawn }
}

export const both = (a: EvictRecord, b: EvictRecord): EvictRecord => ({
  kind: 'evict',
  collections: [...a.collections, ...b.collections],
  objects: [...a.objects, ...b.objects],
  documents: [...a.documents, ...b.documents],
  withdrawn: [...(a.withdrawn ?? []), ...(b.withdrawn ?? [])],
})

export const isEmpty = ({
  collections,
  objects,
  documents,
  withdrawn = [],
}: EvictRecord): boolean =>
  [collections, objects, documents, withdrawn].every(({ length }) => length === 0)

const partsOf = (what: Withdrawal, { collections }: Scope): CollectionAddress[] =>
  [...collections.values()].map(({ address }) => address).filter((each) => isPartOf(what, each))

const namedBy = (what: Withdrawal, { key, records }: Scope): EvictRecord['objects'] =>
  [...records.values()]
    .filter(({ held }) => held.namespace === what.namespace)
    .filter(({ held }) => what.name === undefined || held.name === what.name)
    .map(({ held }) => [key, held.namespace, held.name] as const)

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionAddress): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && (of.namespace === '' || of.namespace === namespace)
}

import { isList, isObject, type Json, type JsonObject } from '../json.ts'
import { badRequest, invalid, requestEntityTooLarge, StatusError } from '../status.ts'
import { draftOf, jsonOf, sameDraft, type Draft } from './draft.ts'
import { maxCopied, maxOperations } from './limits.ts'
import { add, parsePointer, PatchFailure, read, remove, replace } from './pointer.ts'

/**
 * Applies RFC 6902 operations, all or none, as the API server does, which is laxer than the RFC:
 * replacing a missing member adds it, a missing value is null, and negative indices count from the
 * end. Throws a StatusError: 400 if `operations` is no list of operations, 413 for too many, and
 * 422 with the server's sentence if one fails; the cause says which.
 */
export function jsonPatch(doc: JsonObject, operations: Json): JsonObject {
  if (!isList(operations) || !operations.every(isObject))
    throw new StatusError(badRequest('error decoding patch: not a list of operations'))
  if (operations.length > maxOperations) throw new StatusError(tooMany(operations.length))
  const target: Target = { draft: draftOf(doc), copied: 0 }
  try {
    for (const operation of operations) apply(target, operation)
    const patched = jsonOf(target.draft)
    if (!isObject(patched)) throw new PatchFailure('the document is no object any more')
    return patched
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error
    throw new StatusError(failed(), { cause: error })
  }
}

const tooMany = (count: number) =>
  requestEntityTooLarge(
    `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${count}`,
  )

const failed = () => invalid('the server rejected our request due to an error in our request', {})

interface Target {
  draft: Draft
  /** Bytes that copy operations have added. */
  copied: number
}

function apply(target: Target, operation: JsonObject): void {
  const kind = text(operation, 'op')
  const path = parsePointer(text(operation, 'path'))
  const value = (): Draft => draftOf(operation['value'] ?? null)
  switch (kind) {
    case 'add':
      return add(target.draft, path, value())
    case 'remove':
      return void remove(target.draft, path)
    case 'replace':
      target.draft = replace(target.draft, path, value())
      return
    case 'move':
      return add(target.draft, path, remove(target.draft, parsePointer(text(operation, 'from'))))
    case 'copy':
      return add(target.draft, path, copied(target, parsePointer(text(operation, 'from'))))
    case 'test':
      if (sameDraft(read(target.draft, path) ?? null, value())) return
      throw new PatchFailure(`testing value /${path.join('/')} failed`)
    default:
      throw new PatchFailure(`unexpected kind: ${kind}`)
  }
}

/** Copies of copies grow exponentially: their sum is bounded. */
function copied(target: Target, from: readonly string[]): Draft {
  const value = jsonOf(read(target.draft, from) ?? null)
  target.copied += JSON.stringify(value).length
  if (target.copied > maxCopied) throw new PatchFailure(`copies add more than ${maxCopied} bytes`)
  return draftOf(value)
}

function text(operation: JsonObject, member: string): string {
  const value = operation[member]
  if (typeof value !== 'string') throw new PatchFailure(`an operation has no ${member}`)
  return value
}

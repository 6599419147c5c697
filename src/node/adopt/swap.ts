import { messageOf } from '../../config/settings.ts'
import { newAuthority, storeAuthority } from '../../certificates/stored-authority.ts'
import { hubPaths } from '../join/hub-files.ts'
import type { FileChange } from '../join/join.ts'
import { ownRights, type NodeFile, type NodeFiles } from '../join/node-files.ts'
import { sha256 } from '../join/record.ts'
import { Adoption, asideName, asideOf, type AdoptionRecord } from './adoption-record.ts'

/**
 * The steps besides files, by the supervisors of the hub and of yurthub. A wait ends at once when
 * `signal` aborts, as if its time were over.
 */
export interface NodeControl {
  /** Ends a yurthub of systemd; of a static pod the kubelet does. Resolves to why that failed. */
  stopYurthub(): Promise<string | undefined>
  /** Starts it again. */
  startYurthub(): Promise<string | undefined>
  /** Starts a hub of systemd. */
  startHub(): Promise<string | undefined>
  stopHub(): Promise<string | undefined>
  /** Resolves to the programs that still listen at the ports, after a bounded time. */
  portsFree(signal?: AbortSignal): Promise<readonly string[]>
  /** Resolves to why the hub or the Node is not ready after a bounded time. */
  ready(signal?: AbortSignal): Promise<string | undefined>
  /** Whether yurthub answers, after a bounded time. */
  yurthubAnswers(signal?: AbortSignal): Promise<boolean>
}

/** The changes of an adoption. */
export interface Swap {
  readonly record: AdoptionRecord
  /** Written while yurthub runs. */
  readonly before: readonly FileChange[]
  readonly links: readonly { readonly path: string; readonly target: string }[]
  /** Written once its ports are free. */
  readonly after: readonly FileChange[]
}

/** The hub did not take yurthub's place; the message says why. */
class AdoptionFailed extends Error {
  readonly code = 'ADOPTION_FAILED'
}

/**
 * Puts the hub in yurthub's place. Each step is on the disk before the next one, and finds by
 * itself whether it is done: after an interruption anywhere, this or `rollBack` goes on. Throws
 * `AdoptionFailed`, the error of a file operation, or the reason of `signal`; the caller rolls
 * back.
 */
export async function swapIn(
  files: NodeFiles,
  rootDir: string,
  swap: Swap,
  control: NodeControl,
  signal?: AbortSignal,
): Promise<void> {
  const { record } = swap
  const adoption = new Adoption(files, rootDir)
  const authority = await newAuthority()
  signal?.throwIfAborted()
  files.makeFolder(rootDir, 0o700)
  adoption.write(record)
  // The hub's certificate is recognised by its authority, which is known before the hub runs.
  storeAuthority(files.ownFolder(`${rootDir}/pki`, 0o700), authority)
  write(files, swap.before)
  for (const { path, target } of swap.links) files.link(path, target)
  for (const path of record.aside) {
    if (!files.isThere(path)) continue
    if (files.isThere(asideOf(path))) throw new AdoptionFailed(writtenAgain(path))
    files.rename(path, asideName(path))
  }
  if (record.phase !== 'starting') {
    await succeeding('yurthub was not stopped', control.stopYurthub())
    const holders = await control.portsFree(signal)
    signal?.throwIfAborted()
    if (holders.length > 0) throw new AdoptionFailed(`yurthub did not end: ${holders.join(', ')}`)
    adoption.write({ ...record, phase: 'starting' })
  }
  write(files, swap.after)
  await succeeding('the hub was not started', control.startHub())
  signal?.throwIfAborted()
  await succeeding('the node is not ready with the hub', control.ready(signal), signal)
  const back = record.aside.find((path) => files.isThere(path))
  if (back !== undefined) throw new AdoptionFailed(writtenAgain(back))
  adoption.write({ ...record, phase: 'adopted' })
}

const writtenAgain = (path: string): string =>
  `${path} was written again by something else: if OpenYurt keeps it (a YurtStaticSet), take the node out of its reach first`

/**
 * Puts yurthub in its place again, with its former files, and removes those of the hub; its state
 * stays. Safe to repeat after an interruption anywhere. When `signal` aborts it waits for nothing
 * more, and ends with yurthub's files in place. Resolves to notes for the operator.
 */
export async function rollBack(
  files: NodeFiles,
  rootDir: string,
  record: AdoptionRecord,
  control: NodeControl,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const notes: string[] = []
  const keepCopy = (path: string, file: NodeFile, why: string): void => {
    const copy = `${rootDir}/left/${path.split('/').at(-1)}`
    files.write(copy, { ...file, ...ownRights(0o600) })
    notes.push(`${path} ${why}: a copy is in ${copy}`)
  }
  const adoption = new Adoption(files, rootDir)
  if (record.phase !== 'rolling-back') adoption.write({ ...record, phase: 'rolling-back' })
  const bySystemd = 'systemd' in record.runBy
  const isSwapped = record.aside.some((path) => files.isThere(asideOf(path)))
  if (bySystemd) noting(notes, 'the hub was not stopped', await control.stopHub())
  for (const { path, sha256: sum } of record.written.toReversed()) {
    if (sum === null) {
      files.unlink(path)
      continue
    }
    const found = files.read(path)
    if (found && sha256(found.content) !== sum) keepCopy(path, found, 'was changed since')
    files.remove(path)
  }
  const holders = isSwapped || bySystemd ? await control.portsFree(signal) : []
  if (holders.length > 0) notes.push(`the hub has not ended yet: ${holders.join(', ')}`)
  for (const path of record.aside) {
    if (!files.isThere(asideOf(path))) continue
    const other = files.isThere(path) ? files.read(path) : undefined
    if (other) keepCopy(path, other, 'was written again meanwhile')
    files.rename(asideOf(path), path.split('/').at(-1) ?? '')
  }
  for (const path of hubPaths(record.runBy)) files.sweep(path)
  for (const folder of record.folders.toReversed()) files.removeFolder(folder)
  noting(notes, 'yurthub was not started', await control.startYurthub())
  if (!(await control.yurthubAnswers(signal)))
    notes.push('yurthub does not answer yet: see its log')
  adoption.forget()
  return notes
}

function write(files: NodeFiles, changes: readonly FileChange[]): void {
  for (const { path, after } of changes) if (after) files.write(path, after)
}

async function succeeding(
  what: string,
  failure: Promise<string | undefined>,
  signal?: AbortSignal,
): Promise<void> {
  const why = await failure.catch(messageOf)
  if (why === undefined) return
  signal?.throwIfAborted()
  throw new AdoptionFailed(`${what}: ${why}`)
}

function noting(notes: string[], what: string, failure: string | undefined): void {
  if (failure !== undefined) notes.push(`${what}: ${failure}`)
}

import { isSeq, parseDocument } from 'yaml'
import type { NodeFiles } from '../join/node-files.ts'
import { sha256 } from '../join/record.ts'
import { reportFlag } from '../join/static-pod.ts'
import { Adoption, type AdoptionRecord } from './adoption-record.ts'

const container = ['spec', 'containers', 0] as const

/** The image of the hub's only container; '' where the manifest cannot be read. */
export function imageIn(manifest: string | undefined): string {
  const image = parseDocument(manifest ?? '').getIn([...container, 'image'])
  return typeof image === 'string' ? image : ''
}

/**
 * Gives the static pod of an adopted node another image, and has its hub report on the Node. Its
 * other flags, and what an operator has changed there, stay. Safe to repeat after an interruption
 * anywhere.
 */
export function changeImage(
  files: NodeFiles,
  rootDir: string,
  record: AdoptionRecord,
  { image, staticPod }: { readonly image: string; readonly staticPod: string },
): void {
  const before = files.read(staticPod)
  if (before === undefined) return
  const content = Buffer.from(withImage(before.content.toString(), image))
  // After an interruption the record is ahead of the file; of a file that was changed by others, a
  // roll back keeps a copy.
  const own = [before.content, content].map(sha256)
  const written = record.written.map((file) =>
    file.path === staticPod && own.includes(file.sha256 ?? '')
      ? { ...file, sha256: sha256(content) }
      : file,
  )
  new Adoption(files, rootDir).write({ ...record, written })
  files.write(staticPod, { ...before, content })
}

function withImage(manifest: string, image: string): string {
  const pod = parseDocument(manifest)
  const args = pod.getIn([...container, 'args'])
  if (pod.errors.length > 0 || !isSeq(args))
    throw new Error('the manifest of the hub is not understood, and keeps its image')
  pod.setIn([...container, 'image'], image)
  const given = args.toJSON() as unknown[]
  if (!given.some((arg) => String(arg).split('=')[0] === reportFlag)) args.add(reportFlag)
  return pod.toString({ lineWidth: 0 })
}

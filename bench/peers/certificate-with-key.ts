import { readFileSync, writeFileSync } from 'node:fs'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** The node's certificate and its key in one file of PEM, as many programs want them. */
export function certificateWithKey(node: Upstream['node'], workspace: Workspace): string {
  const file = workspace.file('node.pem')
  const both = [node.certificate, node.key].map((path) => readFileSync(path, 'utf8'))
  writeFileSync(file, both.join(''), { mode: 0o600 })
  return file
}

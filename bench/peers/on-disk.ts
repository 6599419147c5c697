import { mkdirSync } from 'node:fs'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { FaultyDisk, disk } from '../../test/crash/disk.ts'
import type { Setting } from '../scenarios/scenario.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { startHub } from './hub.ts'

/**
 * How a hub is started whose disk is watched, once and when it is first asked for; or why there is
 * none.
 */
export function onDisk(
  upstream: Upstream,
  workspace: Workspace,
): NonNullable<Setting['onDisk']> | { readonly reason: string } {
  const folder = workspace.file('disk')
  mkdirSync(folder)
  const made = disk(folder)
  if ('reason' in made) return made
  const start: NonNullable<Setting['onDisk']> = async () => {
    const name = 'hub-on-disk'
    mkdirSync(workspace.file(name))
    const under = new FaultyDisk(
      made.library,
      workspace.file(name),
      workspace.file('disk', 'control'),
    )
    return { peer: await startHub(upstream, workspace, name, { env: under.env }), disk: under }
  }
  let started: ReturnType<typeof start> | undefined
  return () => (started ??= start())
}

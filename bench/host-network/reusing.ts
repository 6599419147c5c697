import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { writeProgramImage } from '../../test/kit/cluster/oci-image.ts'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { reusingImage } from './workloads.ts'

/** The archive of the image with reused-port.c, compiled; `undefined` without a compiler. */
export function reusingArchive(workspace: Workspace): string | undefined {
  const program = workspace.file('reused-port')
  const source = join(import.meta.dirname, 'reused-port.c')
  const flags = ['-static', '-Os', '-Wall', '-Wextra', '-Werror']
  try {
    execFileSync('cc', [...flags, '-o', program, source], { stdio: 'pipe' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw cause
  }
  const archive = workspace.file('reused-port.tar')
  writeProgramImage(reusingImage, program, archive)
  return archive
}

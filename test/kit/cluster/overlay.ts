import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whether the file systems of a folder can be laid over each other, as layers of images are: what
 * cannot do that copies a whole image for each layer and each container.
 */
export function takesOverlays(folder: string): boolean {
  // Files of one run probe at once: two mounts must not have the same upper folder.
  const probed = mkdtempSync(join(folder, 'overlay-probe-'))
  const [lower, upper, work] = ['lower', 'upper', 'work'].map((name) => {
    const path = join(probed, name)
    mkdirSync(path)
    return path
  })
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`
  const probe = ['mount', '-t', 'overlay', '-o', options, 'probe', '/mnt']
  return spawnSync('unshare', ['--mount', ...probe]).status === 0
}

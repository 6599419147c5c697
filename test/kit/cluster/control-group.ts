import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = '/sys/fs/cgroup'

/**
 * Makes a control group for one kubelet's pods, so that kubelets side by side take none of each
 * other's for orphans: one group in cgroup v2, one in each hierarchy of v1. The workspace's reaper
 * removes them.
 */
export function makeControlGroup(name: string): void {
  if (existsSync(join(root, 'cgroup.controllers'))) {
    mkdirSync(join(root, name))
    return
  }
  for (const hierarchy of readdirSync(root)) {
    const group = join(root, hierarchy, name)
    mkdirSync(group, { recursive: true })
    // A cpuset without processors and memory takes no process.
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(group, file)))
        writeFileSync(join(group, file), readFileSync(join(root, hierarchy, file)))
  }
}

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { established, inodeIn, socketsIn } from '../../src/base/socket-table.ts'

/** How many connections the process `id` has open to `port`, of any address. */
export function openConnections(id: number, port: number): number {
  const own = socketsOf(id)
  return ['tcp', 'tcp6']
    .flatMap((table) => [...socketsIn(readFileSync(`/proc/${id}/net/${table}`, 'utf8'))])
    .filter(({ state, inode }) => state === established && own.has(inode))
    .filter(({ remote }) => Number.parseInt(remote.split(':')[1] ?? '', 16) === port).length
}

function socketsOf(id: number): ReadonlySet<string> {
  const folder = `/proc/${id}/fd`
  const inodes = readdirSync(folder).flatMap((name) => {
    try {
      return [inodeIn(readlinkSync(`${folder}/${name}`)) ?? '']
    } catch {
      return [] // It was closed meanwhile.
    }
  })
  return new Set(inodes)
}

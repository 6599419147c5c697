import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** One line of `/proc/net/tcp`, as far as it is looked at. */
interface TcpLine {
  readonly remotePort: number
  readonly established: boolean
  readonly inode: string
}

/** `man 5 proc_net`: ports in hexadecimal after the address, 01 for established, the inode in the tenth column. */
function parseTcp(table: string): TcpLine[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words.length > 9)
    .map((words) => ({
      remotePort: Number.parseInt(words[2]?.split(':')[1] ?? '', 16),
      established: words[3] === '01',
      inode: words[9] ?? '',
    }))
}

/** How many connections the process `id` has open to `port`, of any address. */
export function openConnections(id: number, port: number): number {
  const own = socketsOf(id)
  return ['tcp', 'tcp6']
    .flatMap((table) => parseTcp(readFileSync(`/proc/${id}/net/${table}`, 'utf8')))
    .filter((line) => line.remotePort === port && line.established && own.has(line.inode)).length
}

function socketsOf(id: number): ReadonlySet<string> {
  const folder = `/proc/${id}/fd`
  const inodes = readdirSync(folder).flatMap((name) => {
    try {
      return [/^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${name}`))?.[1] ?? '']
    } catch {
      return [] // It was closed meanwhile.
    }
  })
  return new Set(inodes)
}

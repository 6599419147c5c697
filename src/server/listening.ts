import type { AddressInfo, Server } from 'node:net'

export interface Place {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Told of what goes wrong from then on: connections that could not be taken, as when file handles run out. */
  readonly onBroken: (cause: unknown) => void
}

/** Resolves with the port when the server listens; rejects where it cannot. No later failure ends the process. */
export async function listening(server: Server, { host, port, onBroken }: Place): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', onBroken)
  return (server.address() as AddressInfo).port
}

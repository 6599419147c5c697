import { Server as PlainServer } from 'node:http'
import { Server as SecureServer } from 'node:https'

/** Calls `act` before each request that a server of this process hands on. */
export function onEveryRequest(act: () => void): void {
  for (const { prototype } of [PlainServer, SecureServer]) {
    const emit = Reflect.get(prototype, 'emit') as (...all: unknown[]) => boolean
    prototype.emit = function (this: PlainServer, name: string, ...rest: unknown[]): boolean {
      if (name === 'request') act()
      return Reflect.apply(emit, this, [name, ...rest])
    } as typeof prototype.emit
  }
}

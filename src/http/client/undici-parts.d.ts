// The modules of undici that `undici.ts` loads one by one; the package declares only its whole.

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici'
}

declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici'
}

declare module 'undici/lib/core/connect.js' {
  export { buildConnector as default } from 'undici'
}

// Of the language, and in the types of browsers only.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array, options?: object) => object
  readonly Instance: new (module: object) => object
}

/**
 * Packages that most test files load: a run makes one file of each, so that a process finds, reads
 * and links that one. Those of undici have parts in common, which it has once.
 */
export const bundledPackages = {
  modules: ['tap', '@peculiar/x509', 'lru-cache'],
  commonJs: [
    'pino',
    'prom-client',
    'undici',
    'undici/lib/core/connect.js',
    'undici/lib/dispatcher/client.js',
    'undici/lib/dispatcher/pool.js',
    'yaml',
  ],
} as const

/** Below a folder of bundles. Of stacks tap leaves out what is in the folder of its packages. */
export const pathOfBundle = (name: string): string =>
  `node_modules/${name === 'tap' ? '@tapjs/tap' : name}/bundle.js`

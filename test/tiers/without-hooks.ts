/**
 * To be imported before a test file's own modules. Tap follows every promise that a test makes, by
 * an asynchronous hook, to find the test that an uncaught error belongs to. With such a hook an
 * `await` takes ten times as long, in the test and in the hub that it runs. Without it an uncaught
 * error ends the file, which fails as well.
 */
import hooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const none: hooks.AsyncHook = { enable: () => none, disable: () => none }
hooks.createHook = () => none
syncBuiltinESMExports()

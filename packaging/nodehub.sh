#!/bin/sh
exec /opt/nodehub/bin/node --disable-sigusr1 /opt/nodehub/dist/src/main.js "$@"

#!/bin/sh
# An authority of the stack's own and one certificate for all of its services, in the folder $1; what is there stays.
# For looking around: whoever gets at the volume has the authority's key.
set -eu
cd "$1"
[ -e tidemark.pem ] && exit 0
umask 077
curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $curve -subj "/CN=Tidemark stack CA" -days 3650 -addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.pem
openssl req -new $curve -subj "/CN=tidemark" -keyout tidemark.key -out tidemark.csr
cat > tidemark.ext << 'END'
basicConstraints=CA:FALSE
subjectAltName=DNS:writer,DNS:query,DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
END
openssl x509 -req -in tidemark.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -extfile tidemark.ext -out tidemark.new
chmod 644 ca.pem
mv tidemark.new tidemark.pem

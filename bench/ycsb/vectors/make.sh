#!/bin/sh
# Writes the vectors again, from the original YCSB. Needs Java 17 and mvn. The jars stay outside the repository.
set -eu
cd "$(dirname "$0")"
jars=${JARS:-"${TMPDIR:-/tmp}/ycsb-core-0.17.0"}
mkdir -p "$jars"
for artifact in site.ycsb:core:0.17.0 org.apache.htrace:htrace-core4:4.1.0-incubating \
    org.codehaus.jackson:jackson-core-asl:1.9.4 org.codehaus.jackson:jackson-mapper-asl:1.9.4 \
    org.hdrhistogram:HdrHistogram:2.1.4 javax.xml.bind:jaxb-api:2.3.1; do
    mvn -q dependency:copy -Dartifact="$artifact" -DoutputDirectory="$jars"
done
javac -cp "$jars/*" -d "$jars/classes" Vectors.java
java --add-opens java.base/java.lang=ALL-UNNAMED -cp "$jars/*:$jars/classes" Vectors .

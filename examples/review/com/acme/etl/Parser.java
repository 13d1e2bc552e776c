package com.acme.etl;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;

/** Turns a number into text and back, slowly. */
public final class Parser {
    private Parser() {}

    /** A checksum of the digits of the numbers below n. */
    public static long digits(long n) {
        long sum = 0;
        for (long each = 0; each < n; each++) {
            sum += digit(each) + offset();
        }
        return sum;
    }

    /** An offset that is added to every digit; operators may change it while a job runs. */
    private static int offset() {
        try {
            String host = InetAddress.getLocalHost().getHostName();
            return Integer.parseInt(Files.readString(Path.of("/etc/acme", host)).strip());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static int digit(long number) {
        int sum = 0;
        for (long rest = number * 31 + 7; rest > 0; rest /= 10) {
            sum += (int) (rest % 10);
        }
        return sum;
    }
}

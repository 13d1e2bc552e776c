# mypy: ignore-errors
"""Calls that speak a protocol of lines: FTP, SMTP, IMAP, POP and NNTP."""

from __future__ import annotations

import email.mime.text
import ftplib
import imaplib
import io
import poplib
import smtplib
import time
import warnings

from lab.measure.calls.cases import Cases, Place
from lab.measure.calls.materials import MESSAGE, noise

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecated since Python 3.11
    import nntplib

CASES = Cases()
cpu, net = CASES.cpu, CASES.net


def ftp(place: Place) -> ftplib.FTP:
    its = ftplib.FTP()
    its.connect(*place.address("ftp"))
    its.login("a", "b")
    return its


net(ftplib.FTP.connect, lambda p: p, lambda p: ftplib.FTP().connect(*p.address("ftp")))
net(ftplib.FTP.login, lambda p: _ftp_connected(p), lambda its: its.login("a", "b"))
net(ftplib.FTP.sendcmd, ftp, lambda its: its.sendcmd("NOOP"))
net(ftplib.FTP.voidcmd, ftp, lambda its: its.voidcmd("TYPE I"))
net(ftplib.FTP.getresp, ftp, lambda its: (its.putcmd("NOOP"), its.getresp()))
net(ftplib.FTP.getmultiline, ftp, lambda its: (its.putcmd("NOOP"), its.getmultiline()))
net(ftplib.FTP.retrbinary, ftp, lambda its: its.retrbinary("RETR a", lambda _: None))
net(ftplib.FTP.retrlines, ftp, lambda its: its.retrlines("LIST", lambda _: None))
net(ftplib.FTP.storbinary, ftp, lambda its: its.storbinary("STOR a", io.BytesIO(noise(200_000))))
net(ftplib.FTP.storlines, ftp, lambda its: its.storlines("STOR a", io.BytesIO(b"a line\n" * 2000)))
net(ftplib.FTP.nlst, ftp, lambda its: its.nlst())
net(ftplib.FTP.mlsd, ftp, lambda its: list(its.mlsd()))
net(ftplib.FTP.size, ftp, lambda its: its.size("a"))
net(ftplib.FTP.pwd, ftp, lambda its: its.pwd())
net(ftplib.FTP.cwd, ftp, lambda its: its.cwd("a"))
net(ftplib.FTP.mkd, ftp, lambda its: its.mkd("a"))
net(ftplib.FTP.delete, ftp, lambda its: its.delete("a"))
net(ftplib.FTP.rename, ftp, lambda its: its.rename("a", "b"))
net(ftplib.FTP.quit, ftp, lambda its: its.quit())
net(ftplib.FTP.ntransfercmd, ftp, lambda its: its.ntransfercmd("RETR a")[0].close())
net(ftplib.FTP.makepasv, ftp, lambda its: its.makepasv())
cpu(ftplib.parse227, lambda: ftplib.parse227("227 at (1,2,3,4,5,6)"), 20000)


def _ftp_connected(place: Place) -> ftplib.FTP:
    its = ftplib.FTP()
    its.connect(*place.address("ftp"))
    return its


def smtp(place: Place) -> smtplib.SMTP:
    its = smtplib.SMTP(*place.address("smtp"), local_hostname="here")
    its.ehlo()
    return its


MAIL = email.mime.text.MIMEText("a text\n" * 100)
MAIL["From"], MAIL["To"] = "a@b", "c@d"
net(smtplib.SMTP.connect, lambda p: p, lambda p: smtplib.SMTP(local_hostname="here").connect(*p.address("smtp")))
net(smtplib.SMTP.ehlo, smtp, lambda its: its.ehlo())
net(smtplib.SMTP.helo, smtp, lambda its: its.helo())
net(smtplib.SMTP.docmd, smtp, lambda its: its.docmd("NOOP"))
net(smtplib.SMTP.getreply, smtp, lambda its: (its.putcmd("NOOP"), its.getreply()))
net(smtplib.SMTP.noop, smtp, lambda its: its.noop())
net(smtplib.SMTP.mail, smtp, lambda its: its.mail("a@b"))
net(smtplib.SMTP.rcpt, smtp, lambda its: its.rcpt("a@b"))
net(smtplib.SMTP.data, smtp, lambda its: its.data(MESSAGE))
net(smtplib.SMTP.sendmail, smtp, lambda its: its.sendmail("a@b", ["c@d"], MESSAGE))
net(smtplib.SMTP.send_message, smtp, lambda its: its.send_message(MAIL))
net(smtplib.SMTP.quit, smtp, lambda its: its.quit())
cpu(smtplib.quotedata, lambda: smtplib.quotedata(MESSAGE), 300)


def imap(place: Place) -> imaplib.IMAP4:
    its = imaplib.IMAP4(*place.address("imap"))
    its.login("a", "b")
    its.select()
    return its


net(imaplib.IMAP4.login, lambda p: imaplib.IMAP4(*p.address("imap")), lambda its: its.login("a", "b"))
net(imaplib.IMAP4.select, imap, lambda its: its.select())
net(imaplib.IMAP4.search, imap, lambda its: its.search(None, "ALL"))
net(imaplib.IMAP4.fetch, imap, lambda its: its.fetch("1", "(BODY[])"))
net(imaplib.IMAP4.list, imap, lambda its: its.list())
net(imaplib.IMAP4.noop, imap, lambda its: its.noop())
net(imaplib.IMAP4.status, imap, lambda its: its.status("INBOX", "(MESSAGES)"))
net(imaplib.IMAP4.append, imap, lambda its: its.append("INBOX", None, None, MESSAGE.encode()))
net(imaplib.IMAP4._simple_command, imap, lambda its: its.noop())
net(imaplib.IMAP4._command_complete, imap, lambda its: its._command_complete("NOOP", its._command("NOOP")))
net(imaplib.IMAP4._get_response, imap, lambda its: (its._command("NOOP"), its._get_response()))
net(imaplib.IMAP4.logout, imap, lambda its: its.logout())
cpu(imaplib.Time2Internaldate, lambda: imaplib.Time2Internaldate(time.time()), 3000)


def pop(place: Place) -> poplib.POP3:
    return poplib.POP3(*place.address("pop"))


net(poplib.POP3.__init__, lambda p: p, lambda p: poplib.POP3(*p.address("pop")).close())
net(poplib.POP3.stat, pop, lambda its: its.stat())
net(poplib.POP3.list, pop, lambda its: its.list())
net(poplib.POP3.retr, pop, lambda its: its.retr(1))
net(poplib.POP3.dele, pop, lambda its: its.dele(1))
net(poplib.POP3.uidl, pop, lambda its: its.uidl())
net(poplib.POP3._shortcmd, pop, lambda its: its._shortcmd("NOOP"))
net(poplib.POP3._longcmd, pop, lambda its: its._longcmd("LIST"))
net(poplib.POP3.quit, pop, lambda its: its.quit())


def nntp(place: Place) -> nntplib.NNTP:
    return nntplib.NNTP(*place.address("nntp"))


net(nntplib.NNTP.group if hasattr(nntplib.NNTP, "group") else nntplib.NNTP, nntp, lambda its: its.group("a.group"))
net(nntplib.NNTP.list, nntp, lambda its: its.list())
net(nntplib.NNTP.article, nntp, lambda its: its.article("1"))
net(nntplib.NNTP.body, nntp, lambda its: its.body("1"))
net(nntplib.NNTP._getlongresp, nntp, lambda its: its.body("1"))
net(nntplib.NNTP.date, nntp, lambda its: its.date())
